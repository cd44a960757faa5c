import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";

const SHOWN = 5;

/** What a recall of the memory's own words finds besides itself. */
export function Near({ retain, memory }: { retain: Retain; memory: Schemas["MemoryWithEvents"] }) {
  const found = useLoaded(async () => {
    const recalled = await retain.memories.recall({ query: memory.content.slice(0, 2_000), top_k: SHOWN + 1, min_score: 0 });
    return recalled.memories.filter((one) => one.id !== memory.id).slice(0, SHOWN);
  }, [memory.id, memory.content]);
  return (
    <>
      <h2>Near it</h2>
      <Show of={found}>
        {(memories) => (
          <>
            {memories.length === 0 && <p class="quiet">Nothing is near it.</p>}
            <ol class="recalled">
              {memories.map((one) => (
                <li key={one.id}>
                  <a href={addressOf(one.tenant_id, "memory", one.id)}>{one.content}</a>
                  <span class="number">{one.score.toFixed(3)}</span>
                </li>
              ))}
            </ol>
          </>
        )}
      </Show>
    </>
  );
}
