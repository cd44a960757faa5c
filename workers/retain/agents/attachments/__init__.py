"""Attachments over HTTP: the routes, and the files that a request for a run names or brings."""
