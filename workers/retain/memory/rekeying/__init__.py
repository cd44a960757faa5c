"""From legacy keys to canonical ones: tiers that read both, the phases of the migration, its backfill."""
