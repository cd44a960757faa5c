-- Receipts of erasures are listed by tenant, the newest first.

CREATE INDEX erasure_receipts_by_tenant ON erasure_receipts (tenant_id, receipt_id);

INSERT INTO schema_versions (version, usable_from) VALUES (51, 42);
