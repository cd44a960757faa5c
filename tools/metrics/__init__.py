"""Measure the code: sizes, types, documentation, tests, and the imports between its packages. For maintainers."""
