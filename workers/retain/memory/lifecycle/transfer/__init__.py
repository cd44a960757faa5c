"""Moving memories: the lines of an export, and what an import makes of them."""
