import { diffWordsWithSpace } from "diff";
import type { Schemas } from "retain-client";

import { text, time, words } from "../shown.ts";
import { Source } from "./source.tsx";

type LearningEvent = Schemas["MemoryWithEvents"]["events"][number];

/** The fields that an edit may change. */
export const EDITABLE = ["content", "metadata", "kind", "subject", "predicate", "object", "confidence", "importance", "expires_at_ms"] as const;
/** Texts that are longer are shown whole, without what changed within them. */
const MOST_COMPARED = 20_000;

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

/** Return what events say together: of each field what was set last. */
export function foldOf(events: readonly LearningEvent[]): Record<string, unknown> {
  return Object.assign({}, ...events.map(({ data }) => data));
}

/** Return the fields by which an earlier version differs from the present one: what an edit has to set to restore it. */
export function restoring(events: readonly LearningEvent[], at: number, present: Record<string, unknown>): Record<string, unknown> {
  const version = foldOf(events.slice(0, at + 1));
  return Object.fromEntries(
    EDITABLE.filter((field) => field in version && text(version[field] ?? null) !== text(present[field] ?? null)).map((field) => [field, version[field]]),
  );
}

/** What became of a memory, an entry for each event: what it changed, and the event itself. restore: absent for who may not. */
export function History({ memory, atMs, restore }: {
  memory: Schemas["MemoryWithEvents"];
  atMs: number | undefined;
  restore: ((changes: Record<string, unknown>) => () => void) | undefined;
}) {
  const { events } = memory;
  const changes = changesOf(events);
  const present = memory as unknown as Record<string, unknown>;
  return (
    <ol class="history">
      {events.map((event, at) => {
        const earlier = restoring(events, at, present);
        return (
          <li key={event.event_id} class={atMs !== undefined && event.at_ms > atMs ? "later" : ""}>
            {atMs !== undefined && event.at_ms > atMs && <b class="mark">later</b>}
            <b>{words(event.kind)}</b> <time class="quiet">{time(event.at_ms)}</time> <span class="quiet"><Source tenant={memory.tenant_id} source={event.source} id={memory.id} /></span>
            {changes[at]!.map((change) => <Changed key={change.field} change={change} />)}
            {restore !== undefined && Object.keys(earlier).length > 0 && (
              <p class="actions"><button onClick={restore(earlier)}>Restore this version</button></p>
            )}
            <details><summary>Event</summary><pre>{text(event)}</pre></details>
          </li>
        );
      })}
    </ol>
  );
}

function Changed({ change: { field, before, after } }: { change: Change }) {
  const shown = (value: unknown) => (field.endsWith("_ms") && typeof value === "number" ? time(value) : text(value));
  return <p><span class="quiet">{words(field)}:</span> <Difference before={shown(before)} after={shown(after)} /></p>;
}

/** Two texts as one, with what is only in either of them marked. */
export function Difference({ before, after }: { before: string; after: string }) {
  if (before.length + after.length > MOST_COMPARED) return <><del>{before}</del> <ins>{after}</ins></>;
  return (
    <span class="difference" dir="auto">
      {diffWordsWithSpace(before, after).map(({ value, added, removed }, at) => (added ? <ins key={at}>{value}</ins> : removed ? <del key={at}>{value}</del> : value))}
    </span>
  );
}
