import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { Lanes, lanesOf } from "../people/lanes.tsx";

/** What was and is stated of the same subject under the same predicate: a lane, from the first to now. */
export function SameFact({ retain, memory }: { retain: Retain; memory: Schemas["MemoryWithEvents"] }) {
  const { subject, predicate } = memory;
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { filter: JSON.stringify({ subject, predicate }), all: true, limit: 50 } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data!.memories;
  }, [memory.id]);
  return (
    <>
      <h2>The same fact over time</h2>
      <Show of={found}>{(facts) => <Lanes lanes={lanesOf(facts)} nowMs={Date.now()} />}</Show>
    </>
  );
}
