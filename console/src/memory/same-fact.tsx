import type { Retain, Schemas } from "retain-client";

import { Nothing, Show, useLoaded } from "../loading.tsx";
import { Lanes, lanesOf } from "../people/lanes.tsx";

/** What was and is stated of the same subject under the same predicate: a lane, from the first to now. */
export function SameFact({ retain, memory, atMs }: { retain: Retain; memory: Schemas["MemoryWithEvents"]; atMs: number | undefined }) {
  const { subject, predicate } = memory;
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { filter: JSON.stringify({ subject, predicate }), all: true, limit: 50, ...(atMs !== undefined && { as_of_ms: atMs }) } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data!.memories;
  }, [memory.id, subject, predicate, atMs]);
  return (
    <>
      <h2>The same fact over time</h2>
      <Show of={found}>{(facts) => facts.length === 0 ? <Nothing>It was not known then.</Nothing> : <Lanes lanes={lanesOf(facts)} nowMs={atMs ?? Date.now()} />}</Show>
    </>
  );
}
