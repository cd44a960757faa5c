"""A cluster on this machine: whole nodes are killed while others write."""
