"""All scenarios. Together they come by every fault point."""

from __future__ import annotations

from collections.abc import Mapping

from tests.kills import of_files, of_items, of_memory, of_runs, of_tenants
from tests.kills.scenario import Scenario
from tests.kills.staged import SCHEDULE

SCENARIOS: Mapping[str, Scenario] = {
    "run": Scenario(of_runs.whole, of_runs.of_agents),
    "delegate": Scenario(of_runs.delegated, of_runs.of_agents),
    "stream": Scenario(of_runs.streamed, of_runs.of_agents),
    "background": Scenario(of_runs.in_background, of_runs.of_agents),
    "learning": Scenario(of_runs.learned, of_runs.of_agents),
    "webhook": Scenario(of_runs.replayed, of_runs.messages, of_runs.with_webhook),
    "attachment": Scenario(of_files.attached, of_files.files),
    "planned": Scenario(of_runs.planned, of_runs.planned_runs),
    "approval": Scenario(of_runs.approved, of_runs.of_agents),
    "cancel": Scenario(of_runs.cancelled, of_runs.of_agents),
    "gateway": Scenario(of_runs.shipped, of_runs.shipments),
    "passing": Scenario(of_runs.passed_on, of_runs.of_agents),
    "fork": Scenario(of_runs.forked, of_runs.of_agents, of_runs.whole),
    "withdrawal": Scenario(of_runs.withdrawn, of_runs.of_agents),
    "outcome": Scenario(of_runs.judged, of_runs.outcomes, of_runs.drafted),
    "deletion": Scenario(of_runs.deleted, of_runs.what_is_left, of_runs.whole),
    "ingest": Scenario(of_memory.ingested, of_memory.records),
    "store": Scenario(of_memory.stored, of_memory.records),
    "edit": Scenario(of_memory.edited, of_memory.records, of_memory.stored),
    "erasure": Scenario(of_memory.erased, of_memory.records, of_memory.stored),
    "user": Scenario(of_memory.erased_user, of_memory.without_user, of_memory.known_user),
    "reindex": Scenario(of_memory.reindexed, of_memory.records, of_memory.stored),
    "backup": Scenario(of_memory.backed_up, of_memory.backups, of_memory.stored),
    "restore": Scenario(of_memory.restored, of_memory.records, of_memory.backed_up_elsewhere),
    "import": Scenario(of_memory.imported, of_memory.records, of_memory.backed_up_elsewhere),
    "settings": Scenario(of_tenants.configured, of_tenants.settings),
    "evaluation": Scenario(of_tenants.evaluated, of_tenants.results),
    "schedule": Scenario(of_tenants.caught_up, of_tenants.debts, of_tenants.owing, "schedule", SCHEDULE),
    "brief": Scenario(of_tenants.briefed, of_memory.records, of_memory.stored, "schedule", SCHEDULE),
    "items": Scenario(of_items.put, of_items.items),
    "removal": Scenario(of_items.removed, of_items.items, of_items.put),
    "keys": Scenario(of_items.migrated, of_items.under_keys, of_items.migrating, "keys"),
}
