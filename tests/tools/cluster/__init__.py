"""Tests of the tool that writes and serves the nodes of a cluster."""
