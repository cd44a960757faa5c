"""Keys for applications: created for one tenant, with scopes, and accepted where a deployment turns them on."""
