"""Memory: working, episodic and semantic."""
