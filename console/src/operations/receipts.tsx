import { Pages, type Retain } from "retain-client";

import { More, newest, Nothing, Show, useLoaded } from "../loading.tsx";
import { counted, time, words } from "../shown.ts";

const MOST = 20;

/** The receipts of the tenant's erasures, the newest first. */
export function Receipts({ retain }: { retain: Retain }) {
  const found = useLoaded(() => {
    const path = { tenant: retain.tenant };
    const pages = new Pages(async (cursor) => {
      const page = (await retain.api.GET("/v1/tenants/{tenant}/erase", { params: { path, query: { ...cursor, limit: MOST } } })).data!;
      return [page.receipts, page.cursor];
    });
    return newest(pages, MOST);
  }, []);
  return (
    <>
      <h2>Erasures</h2>
      <Show of={found}>
        {([receipts, more]) => (
          <>
            {receipts.length === 0 && <Nothing>Nothing was erased.</Nothing>}
            <ul class="rows">
              {receipts.map((one) => {
                const counts = Object.entries(one.counts);
                const whole = counts.reduce((sum, [, count]) => sum + count, 0);
                return (
                  <li key={one.receipt_id}>
                    <span>of a {one.kind} <span class={`status ${one.state}`}>{one.state}</span>{one.error !== null && <span class="failure"> {one.error}</span>}</span>
                    <details><summary>{counted(whole, "row")} and objects</summary>{counts.map(([what, count]) => <div key={what}>{words(what)}: {count}</div>)}</details>
                    <code>{one.receipt_id}</code>
                    <time>{time(one.updated_at_ms)}</time>
                  </li>
                );
              })}
            </ul>
            <More of={more} most={MOST} />
          </>
        )}
      </Show>
    </>
  );
}
