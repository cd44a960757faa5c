"""Files that messages bring, inside an instance: what D1 is owed, what is sent again, and the contents."""
