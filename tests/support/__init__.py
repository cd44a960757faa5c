"""What several test areas share: real servers on loopback, and nothing that stands in for Retain's own code."""
