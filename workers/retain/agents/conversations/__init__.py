"""The routes of conversations: listed, read, renamed, deleted."""
