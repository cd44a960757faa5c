-- The migration of tiered memory's keys from legacy patterns to canonical ones. It is per deployment, as its flags are.

-- One row after the start. Every change raises the revision: whoever read an older one is too late.
CREATE TABLE namespace_migration (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 3),
  baseline REAL NOT NULL CHECK (baseline > 0 AND baseline <= 1), -- lowest share of found items that canonical keys must answer
  since_ms INTEGER NOT NULL,         -- when the phase began
  revision INTEGER NOT NULL
);

-- Periods of measurement between two releases, or between a release and a change of phase. The last one is open.
CREATE TABLE namespace_cycles (
  cycle INTEGER PRIMARY KEY,
  phase INTEGER NOT NULL,
  opened_by TEXT NOT NULL,           -- the release's name, or 'phase 2' for a change of phase
  opened_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER,
  verdict TEXT CHECK (verdict IN ('stable', 'below_baseline', 'too_few_reads', 'phase_changed'))
);

-- Reads, added up in the isolates and written at most once a minute.
CREATE TABLE namespace_reads (
  cycle INTEGER NOT NULL,
  tier TEXT NOT NULL CHECK (tier IN ('hot', 'warm', 'cold')),
  canonical INTEGER NOT NULL DEFAULT 0, -- answered by the canonical key
  legacy INTEGER NOT NULL DEFAULT 0, -- answered by a legacy key
  absent INTEGER NOT NULL DEFAULT 0, -- found nothing
  unread INTEGER NOT NULL DEFAULT 0, -- found nothing, and a legacy key held it (estimated from a sample)
  repaired INTEGER NOT NULL DEFAULT 0,
  repair_failed INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (cycle, tier)
) WITHOUT ROWID;

-- The progress of the backfill, one row per tier and pattern. Reset whenever phase 2 begins.
CREATE TABLE namespace_backfill (
  tier TEXT NOT NULL CHECK (tier IN ('warm', 'cold')),
  template TEXT NOT NULL,
  cursor TEXT,                       -- last legacy key, or page, that was examined
  copied INTEGER NOT NULL DEFAULT 0,
  present INTEGER NOT NULL DEFAULT 0, -- had a canonical value, or were removed
  skipped INTEGER NOT NULL DEFAULT 0, -- keys of another shape
  refused INTEGER NOT NULL DEFAULT 0, -- could not be copied; if any, the backfill is not complete
  updated_at_ms INTEGER NOT NULL,
  completed_at_ms INTEGER,
  PRIMARY KEY (tier, template)
) WITHOUT ROWID;
