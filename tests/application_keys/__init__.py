"""Tests of the keys of applications."""
