"""The operator's resources, one module each: request bodies, handlers and routes."""
