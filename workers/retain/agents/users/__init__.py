"""The users for whom runs act: what is known of them when a run begins, and what D1 is owed of them then."""
