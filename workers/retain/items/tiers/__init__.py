"""The three tiers of items: their protocols and their stores on KV, D1 and R2."""
