import type { Schemas } from "./schemas.js";

/** One event of a run. name: as docs/agents.md of the server lists them. id: its position, where it has one. */
export interface StreamedEvent {
  name: string;
  // The document has no types for the data of events: each name has its own.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  data: Record<string, any>;
  id?: string;
}

const LAST: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** Return the run's result if this is its last event. */
export function resultOf(event: StreamedEvent): Schemas["RunResult"] | undefined {
  return LAST.has(event.name) ? (event.data as Schemas["RunResult"]) : undefined;
}

/**
 * Yield the events of one connection; `undefined` for each piece that completes none.
 *
 * Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export async function* eventsOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<StreamedEvent | undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  let fields = new Map<string, string>();
  for await (const piece of pieces) {
    rest += decoder.decode(piece, { stream: true });
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? "";
    yield undefined;
    for (const line of lines) {
      if (line !== "") {
        note(fields, line);
        continue;
      }
      const data = fields.get("data");
      if (data !== undefined) yield eventOf(fields, data);
      fields = new Map();
    }
  }
}

function note(fields: Map<string, string>, line: string): void {
  const [, name = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
  const before = fields.get(name);
  fields.set(name, name === "data" && before !== undefined ? `${before}\n${value}` : value);
}

function eventOf(fields: Map<string, string>, data: string): StreamedEvent {
  const id = fields.get("id");
  return { name: fields.get("event") ?? "message", data: JSON.parse(data), ...(id === undefined ? {} : { id }) };
}
