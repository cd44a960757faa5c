"""Everything that measures speed or quality."""
