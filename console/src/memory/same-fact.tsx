import type { Retain, Schemas } from "retain-client";

import { More, Nothing, Show, useLoaded } from "../loading.tsx";
import { Lanes, lanesOf } from "../people/lanes.tsx";
import { thenOf, withEvents } from "./events.ts";

const MOST = 50;

/** What was and is stated of the same subject under the same predicate: a lane, from the first to now. */
export function SameFact({ retain, memory, atMs }: { retain: Retain; memory: Schemas["MemoryWithEvents"]; atMs: number | undefined }) {
  const { subject, predicate } = memory;
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { filter: JSON.stringify({ subject, predicate }), all: true, limit: MOST } };
    const { memories, cursor } = (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data! as Schemas["Memories"];
    return { facts: atMs === undefined ? memories : await knownAt(retain, memories, atMs), more: cursor !== null };
  }, [memory.id, subject, predicate, atMs]);
  return (
    <>
      <h2>The same fact over time</h2>
      <Show of={found}>
        {({ facts, more }) => (
          <>
            {facts.length === 0 ? <Nothing>It was not known then.</Nothing> : <Lanes lanes={lanesOf(facts)} nowMs={atMs ?? Date.now()} />}
            <More of={more} most={MOST} />
          </>
        )}
      </Show>
    </>
  );
}

/**
 * Return the memories that were known at a time, as they were then.
 *
 * A list of that time is not asked for: of a filter no index says what met it once, so that its first pages may be empty.
 */
function knownAt(retain: Retain, memories: readonly Schemas["Memory"][], atMs: number): Promise<Schemas["Memory"][]> {
  const recorded = memories.filter((one) => one.recorded_at_ms <= atMs);
  return Promise.all(recorded.map(async ({ id }) => thenOf(await withEvents(retain, id), atMs)));
}
