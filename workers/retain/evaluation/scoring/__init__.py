"""Score a case: what was expected, what was observed, and the pure functions between them."""
