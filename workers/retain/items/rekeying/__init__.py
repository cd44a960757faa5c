"""Migrate items from legacy keys to canonical ones: tiers that read both, the phases, the backfill."""
