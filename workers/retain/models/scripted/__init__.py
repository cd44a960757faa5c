"""A chat model that follows a script: for the demo, for tests, and for trying an agent without a key."""
