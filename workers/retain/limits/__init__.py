"""The platform's documented limits, checked before a call is made. For adapters and the areas above."""
