"""The times and the conversations that a query names."""
