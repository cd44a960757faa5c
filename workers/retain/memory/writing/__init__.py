"""How contents become records: calls that arrive while others are being stored are stored together."""
