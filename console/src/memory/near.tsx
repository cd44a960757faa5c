import type { Retain, Schemas } from "retain-client";

import { Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { cut, LISTED } from "../shown.ts";

const SHOWN = 5;

/** What a recall of the memory's own words finds besides itself. */
export function Near({ retain, memory, atMs }: { retain: Retain; memory: Schemas["MemoryWithEvents"]; atMs: number | undefined }) {
  const found = useLoaded(async () => {
    const then = atMs === undefined ? {} : { as_of_ms: atMs };
    const recalled = await retain.memories.recall({ query: cut(memory.content, 2_000, ""), top_k: SHOWN + 1, min_score: 0, ...then });
    return recalled.memories.filter((one) => one.id !== memory.id).slice(0, SHOWN);
  }, [memory.id, memory.content, atMs]);
  return (
    <>
      <h2>Near it</h2>
      <Show of={found}>
        {(memories) => (
          <>
            {memories.length === 0 && <Nothing>Nothing is near it.</Nothing>}
            <ol class="recalled near">
              {memories.map((one) => (
                <li key={one.id}>
                  <a href={addressOf(one.tenant_id, "memory", one.id)} dir="auto">{cut(one.content, LISTED)}</a>
                  <span class="number">{one.score.toFixed(2)}</span>
                </li>
              ))}
            </ol>
          </>
        )}
      </Show>
    </>
  );
}
