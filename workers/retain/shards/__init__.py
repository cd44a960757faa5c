"""Several databases: where each tenant lives, and how what is asked for it gets there."""
