import type { Schemas } from "retain-client";

import { time, words } from "../shown.ts";

/** The receipt of an erasure: how much was erased, from which store. */
export function Receipt({ receipt }: { receipt: Schemas["Receipt"] }) {
  return (
    <div role="status" class="receipt">
      <p>Receipt <code>{receipt.receipt_id}</code>: <span class={`status ${receipt.state}`}>{receipt.state}</span> {time(receipt.updated_at_ms)}</p>
      {receipt.state === "running" && <p class="quiet">It is not complete yet. It continues here for a minute, and then with the scheduled work.</p>}
      <dl class="facts">
        {Object.entries(receipt.counts).map(([what, count]) => <><dt>{words(what)}</dt><dd>{count}</dd></>)}
      </dl>
    </div>
  );
}
