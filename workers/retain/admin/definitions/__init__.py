"""The agents that tenants define: what is checked, and how a version is added."""
