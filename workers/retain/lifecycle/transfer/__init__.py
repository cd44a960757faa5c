"""The lines of an export, and the plan an import makes of them."""
