"""Migration of items from legacy to canonical keys: tiers that read both, the phases, the backfill."""
