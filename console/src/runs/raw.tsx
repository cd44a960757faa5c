import { useMemo } from "preact/hooks";
import type { Schemas } from "retain-client";

import { text } from "../shown.ts";
import { Virtual } from "../virtual.tsx";
import { type Moment, rowAt, stepsOf } from "./steps.ts";

const USUAL_HEIGHT = 80;

/** The events of a run, as they were logged. moment: whose event is to be shown. */
export function RawEvents({ events, moment }: { events: readonly Schemas["RunEvent"][]; moment: Moment }) {
  const at = useMemo(() => rowAt(stepsOf(events), moment), [events, moment.at, moment.turn, moment.wrote]);
  const row = (at: number) => {
    const event = events[at]!;
    return <pre class="event"><b>{event.seq} {event.kind}</b> {new Date(event.at_ms).toISOString()}{"\n"}{text(event.data)}</pre>;
  };
  return <Virtual name="Events" keys={events.map((event) => event.seq)} usual={USUAL_HEIGHT} at={at} row={row} />;
}
