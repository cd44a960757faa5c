import type { Retain, Schemas } from "retain-client";

import { foldOf } from "./history.tsx";

/** Return a memory in the state that it had at a time, by its events; as it is now if it was not known then. */
export function thenOf(memory: Schemas["MemoryWithEvents"], atMs: number): Schemas["MemoryWithEvents"] {
  const events = memory.events.filter((event) => event.at_ms <= atMs);
  if (events.length === 0) return memory;
  const later = events.length < memory.events.length;
  return { ...memory, ...(later && { valid_to_ms: null, superseded_by: null, expires_at_ms: null }), ...foldOf(events), events: memory.events } as Schemas["MemoryWithEvents"];
}

/** Return a memory with all of its events. */
export async function withEvents(retain: Retain, id: string): Promise<Schemas["MemoryWithEvents"]> {
  const path = { tenant: retain.tenant, id };
  const memory = await retain.memories.get(id);
  for (let { cursor } = memory; cursor !== null; ) {
    const page = (await retain.api.GET("/v1/tenants/{tenant}/memories/{id}", { params: { path, query: { cursor } } })).data!;
    memory.events.push(...page.events);
    cursor = page.cursor;
  }
  return memory;
}
