"""Ingest: conversations become episodes-of-record, and facts are drawn from them."""
