"""The lines of an export, and the plan that an import makes from them."""
