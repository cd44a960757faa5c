"""Which schema a database and an object have, and whether this code knows it."""
