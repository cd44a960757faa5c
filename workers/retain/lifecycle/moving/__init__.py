"""Moving a tenant from one database to another while it is read and written."""
