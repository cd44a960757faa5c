-- The vectors of a closed record carry when it ended and what replaced it: those written before are owed to the index, as the
-- oldest debts of all, so that recall looks at them last.
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)
SELECT r.id, r.tenant_id, r.scope_id, s.parts, 'owed', 0, 0
FROM memory_records r JOIN memory_search s ON s.number = r.number
WHERE r.valid_to_ms IS NOT NULL AND s.parts > 0
  AND r.tenant_id NOT IN (SELECT tenant_id FROM erased_tenants WHERE closed)
ON CONFLICT (record_id) DO NOTHING;
