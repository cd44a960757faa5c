"""The memory contracts: every backend passes the published suite, every broken one fails its invariant's test."""
