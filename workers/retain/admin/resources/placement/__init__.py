"""Where tenants are, in a deployment with several databases."""
