"""Requests to an instance and its answers: typed values with a JSON form, for every caller of an instance."""
