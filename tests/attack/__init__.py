"""An attacker that acts as one tenant and tries to read or change another: see docs/testing.md."""
