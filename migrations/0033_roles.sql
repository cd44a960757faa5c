-- Who may do what. Until somebody grants a role, only those whom the setting OWNERS names have one.
CREATE TABLE role_grants (
  tenant_id TEXT NOT NULL,           -- '*': every tenant, and the deployment itself
  subject TEXT NOT NULL,             -- 'email:', 'domain:', 'service:', 'group:' or 'claim:' and a value
  role TEXT NOT NULL CHECK (role IN ('viewer', 'operator', 'owner')),
  granted_by TEXT NOT NULL,          -- the name from Cloudflare Access
  granted_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, subject)
) WITHOUT ROWID;
CREATE INDEX role_grants_by_subject ON role_grants (subject, tenant_id);

CREATE TRIGGER roles_granted AFTER INSERT ON role_grants BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'role_granted', 'role', new.subject, NULL, new.role);
END;
CREATE TRIGGER roles_changed AFTER UPDATE OF role ON role_grants WHEN new.role <> old.role BEGIN
  INSERT INTO mutations VALUES (new.tenant_id, 'role_granted', 'role', new.subject, NULL, new.role);
END;
CREATE TRIGGER roles_revoked AFTER DELETE ON role_grants BEGIN
  INSERT INTO mutations VALUES (old.tenant_id, 'role_revoked', 'role', old.subject, NULL, old.role);
  DELETE FROM mutation_subjects WHERE tenant_id = old.tenant_id AND thing = 'role' AND key = old.subject;
END;
CREATE TRIGGER erased_tenants_grant_nothing BEFORE INSERT ON role_grants
WHEN EXISTS (SELECT 1 FROM erased_tenants WHERE tenant_id = new.tenant_id AND closed) BEGIN
  SELECT RAISE(ABORT, 'the tenant was erased');
END;
