import type { Schemas } from "retain-client";

import { text } from "../shown.ts";
import { Virtual } from "../virtual.tsx";

const USUAL_HEIGHT = 80;

/** The events of a run, as they were logged. */
export function RawEvents({ events }: { events: readonly Schemas["RunEvent"][] }) {
  const row = (at: number) => {
    const event = events[at]!;
    return <pre class="event"><b>{event.seq} {event.kind}</b> {new Date(event.at_ms).toISOString()}{"\n"}{text(event.data)}</pre>;
  };
  return <Virtual name="Events" keys={events.map((event) => event.seq)} usual={USUAL_HEIGHT} at={undefined} row={row} />;
}
