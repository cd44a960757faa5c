"""Languages other than English: the language of a text, its stop words, and the terms of its words."""
