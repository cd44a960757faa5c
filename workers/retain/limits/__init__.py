"""The platform's documented limits, checked before a call is spent. For adapters and the areas above."""
