"""The operator's resources, one module each: its request bodies and its handlers."""
