"""Ledgers in D1 for the operator, written off the path of requests: errors that were parked, changes in KV, decisions."""
