"""What an instance is asked and what it answers: typed values with a JSON form, for whoever calls an instance."""
