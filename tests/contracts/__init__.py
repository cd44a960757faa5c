"""The memory contracts: every backend passes the published suite, every broken one fails the test of its invariant."""
