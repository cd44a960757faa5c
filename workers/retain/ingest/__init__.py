"""Ingest conversations: their messages become records, and facts are extracted from them. For agents and applications."""
