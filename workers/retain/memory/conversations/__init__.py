"""The conversation of an instance: its messages, its summary, and what a run reads of both."""
