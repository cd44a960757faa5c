"""Who may do what: the roles that callers proved by Cloudflare Access hold, for a tenant or for every tenant."""
