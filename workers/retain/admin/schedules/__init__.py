"""The schedules of a tenant as D1 has them."""
