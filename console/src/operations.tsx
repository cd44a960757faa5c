import type { Retain } from "retain-client";

import { Show, useLoaded } from "./loading.tsx";
import { text, time } from "./shown.ts";

const REFRESH_MS = 10_000;

/** What `/readyz` answers, also with 503. */
interface Readiness {
  status: string;
  version: string;
  stores?: Record<string, string>;
}

/** Whether the system is well, and what it gave up. */
export function OperationsView({ retain }: { retain: Retain }) {
  const ready = useLoaded(async () => (await fetch("/readyz")).json() as Promise<Readiness>, [], REFRESH_MS);
  const quotas = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant } };
    return (await retain.api.GET("/v1/tenants/{tenant}/quotas", { params })).data!;
  }, []);
  const errors = useLoaded(async () => (await retain.api.GET("/admin/errors", { params: { query: { state: "parked" } } })).data!, []);
  return (
    <>
      <h1>Operations</h1>
      <h2>Ready</h2>
      <Show of={ready}>
        {({ status, version, stores }) => (
          <dl class="facts">
            <dt>Status</dt><dd>{status}, version {version}</dd>
            {Object.entries(stores ?? {}).map(([store, state]) => <><dt>{store}</dt><dd>{state}</dd></>)}
          </dl>
        )}
      </Show>
      <h2>Quotas of {retain.tenant}</h2>
      <Show of={quotas}>{(value) => <pre>{text(value)}</pre>}</Show>
      <h2>Given up</h2>
      <Show of={errors}>
        {(page) => (
          <>
            {page.errors.length === 0 && <p class="quiet">Nothing was given up.</p>}
            <ul class="rows">
              {page.errors.map((one) => (
                <li key={one.error_id}><b>{one.code}</b> <span>{one.stage}</span> <time>{time(one.last_at_ms)}</time></li>
              ))}
            </ul>
          </>
        )}
      </Show>
    </>
  );
}
