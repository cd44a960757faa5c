import type { Schemas } from "retain-client";

import { text, time } from "../shown.ts";

type LearningEvent = Schemas["MemoryWithEvents"]["events"][number];

/** What an event changed: a field, what it was and what it is. */
export interface Change {
  field: string;
  before: unknown;
  after: unknown;
}

/** Return what each event changed of a memory, in their order. What is set first changes nothing. */
export function changesOf(events: readonly LearningEvent[]): Change[][] {
  let known: Record<string, unknown> = {};
  return events.map(({ data }) => {
    const changed = Object.entries(data)
      .filter(([field, after]) => field in known && text(known[field]) !== text(after))
      .map(([field, after]) => ({ field, before: known[field], after }));
    known = { ...known, ...data };
    return changed;
  });
}

/** What became of a memory, an entry for each event: what it changed, and the event itself. */
export function History({ events }: { events: readonly LearningEvent[] }) {
  const changes = changesOf(events);
  return (
    <ol class="history">
      {events.map((event, at) => (
        <li key={event.event_id}>
          <b>{event.kind}</b> <time class="quiet">{time(event.at_ms)}</time> <span class="quiet">{by(event)}</span>
          {changes[at]!.map(({ field, before, after }) => (
            <p key={field}>{field}: <del>{text(before)}</del> <ins>{text(after)}</ins></p>
          ))}
          <details><summary>Event</summary><pre>{text(event)}</pre></details>
        </li>
      ))}
    </ol>
  );
}

function by({ source }: LearningEvent): string {
  const { origin, by: who } = source as { origin?: string; by?: string };
  return [origin, who].filter(Boolean).join(" ");
}
