"""The extractors, and the choice between them."""
