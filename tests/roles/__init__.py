"""Tests of roles: subjects, grants, and what they allow."""
