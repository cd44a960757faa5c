import type { Retain } from "retain-client";

import { useMay } from "../access.tsx";
import { Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { duration } from "../shown.ts";
import { Outboxes } from "./outboxes.tsx";

const REFRESH_MS = 10_000;
/** What each kind of debt is. */
const NAMES: Record<string, string> = {
  vectors: "memories that the vector index is owed",
  deliveries: "messages to webhooks",
  ingests: "ingests under way",
  erasures: "erasures under way",
  reindexing: "reindexing",
  backups: "backups under way",
  restores: "restores under way",
  evaluations: "evaluations under way",
};

/** What is still to be done for the tenant, and is retried without anybody. */
export function Debts({ retain }: { retain: Retain }) {
  const may = useMay();
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant } };
    return (await retain.api.GET("/v1/tenants/{tenant}/debts", { params })).data!.debts.filter((debt) => debt.count > 0);
  }, [], { everyMs: REFRESH_MS });
  return (
    <>
      <h2>Still to be done</h2>
      <p class="pages">
        {["queued", "waiting", "running"].map((status) => <a key={status} href={addressOf(retain.tenant, "runs", undefined, { status })}>Runs that are {status}</a>)}
      </p>
      <Show of={found}>
        {(debts) => (
          <>
            {debts.length === 0 && <Nothing>Nothing is owed: indexes, webhooks and jobs are up to date.</Nothing>}
            <ul class="rows">
              {debts.map(({ kind, count, oldest_at_ms }) => (
                <li key={kind}>
                  <b>{NAMES[kind] ?? kind}</b>
                  <span>{count.toLocaleString()}</span>
                  <span class="quiet">{oldest_at_ms !== null && `the oldest for ${duration(Date.now() - oldest_at_ms)}`}</span>
                  <span />
                </li>
              ))}
            </ul>
          </>
        )}
      </Show>
      {may("list_instances") && may("get_instance") && <Outboxes retain={retain} />}
    </>
  );
}
