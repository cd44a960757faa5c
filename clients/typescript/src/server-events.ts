import { objectOf } from "./errors.js";
import type { Schemas } from "./schemas.js";

interface Called {
  turn: number;
  /** `turn.index`. */
  call: string;
}
type Arguments = Record<string, unknown>;

/** The data of each event, as docs/agents.md of the server lists them. */
export interface EventData {
  "run.queued": { run_id: string; instance_id: string; queue_position: number };
  "run.started": { run_id: string; instance_id: string; agent_type: string; memory: Schemas["RunMemory"] };
  "text.delta": { turn: number; offset: number; text: string };
  "text.completed": { turn: number; text: string; finish_reason: string };
  "answer.dropped": { turn: number; code: string; message: string };
  "call.retried": { turn: number; call?: string; code: string; delay_ms: number };
  "model.unavailable": { turn: number; code: string; retry_at_ms: number; gives_up_at_ms: number };
  "tool.called": Called & { name: string; arguments: Arguments };
  "tool.answered": Called & { name: string; failed: boolean; content: string };
  "memory.recalled": Called & { records: { id: string; score: number }[] };
  "memory.stored": Called & { id: string; created: boolean };
  "approval.requested": Called & { name: string; arguments: Arguments; expires_at_ms: number };
  "approval.answered": Called & { approved: boolean; by: string; reason: string | null };
  "run.suspended": Called & { waiting_for: Record<string, unknown> };
  "run.resumed": { turn: number; call?: string };
  "run.recovered": { turn: number; times: number };
  "run.forked": { forked_from: string; turns: number };
  "run.cancelling": { by: string; reason: string | null };
  "run.completed": Schemas["RunResult"];
  "run.failed": Schemas["RunResult"];
  "run.cancelled": Schemas["RunResult"];
}

/** One event of a run. id: its position, where it has one. A newer server may send events with other names: ignore them. */
export type StreamedEvent = {
  [Name in keyof EventData]: { name: Name; data: EventData[Name]; id?: string };
}[keyof EventData];

const LAST: ReadonlySet<string> = new Set(["run.completed", "run.failed", "run.cancelled"]);

/** Return whether an answer is a stream of events. */
export function isStream(response: Response): boolean {
  return response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
}

/** Return the run's result if this is its last event. */
export function resultOf(event: StreamedEvent): Schemas["RunResult"] | undefined {
  return LAST.has(event.name) ? (event.data as Schemas["RunResult"]) : undefined;
}

/**
 * Yield the events of one connection; `undefined` for each comment, with which the server says that the run continues.
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
    for (const line of lines) {
      if (line.startsWith(":")) yield undefined;
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
  const event = { name: fields.get("event"), data: objectOf(data), ...(id === undefined ? {} : { id }) };
  return event as unknown as StreamedEvent;
}
