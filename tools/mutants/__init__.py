"""Mutation tests of what wires the parts together: `python -m tools.mutants`. docs/testing.md explains them."""
