"""The start of an isolate: its first requests, its imports, the upload, and what a snapshot of its memory saves."""
