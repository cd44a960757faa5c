import type { Schemas } from "retain-client";

import { text } from "../shown.ts";

type RunEvent = Schemas["RunEvent"];

/** One row of a timeline: a side effect with its beginning and its end, or something that happened at once. */
export interface Step {
  /** Of its first event, which is the row's address. */
  seq: number;
  turn: number;
  /** `model`, `tool`, `approval`, `delegate`, `crash` or `run`. */
  kind: string;
  title: string;
  fromMs: number;
  /** undefined: it has not ended. */
  toMs: number | undefined;
  failed: boolean;
  /** Taken over from the run that this one continues. */
  carried: boolean;
  /** A crash interrupted it: nobody knows how it ended. */
  interrupted: boolean;
  /** How often its call was repeated, or its model's server waited for. */
  retries: number;
  events: RunEvent[];
}

const BEGINS: Record<string, string> = {
  model_asked: "model",
  tool_called: "tool",
  approval_requested: "approval",
  run_suspended: "delegate",
};
const ENDS: Record<string, string> = {
  model_answered: "model",
  answer_dropped: "model",
  tool_answered: "tool",
  approval_answered: "approval",
  run_resumed: "delegate",
};
const REPEATS = new Set(["call_retried", "model_unavailable"]);
const FAILS = new Set(["answer_dropped", "run_failed", "run_cancelled"]);
const TITLES: Record<string, string> = {
  run_recovered: "Resumed after a crash",
  run_suspended: "Waits for a delegate",
  run_resumed: "Resumed",
  cancel_requested: "Cancel requested",
};

/** Fold a run's events, in their order, into the rows of its timeline. */
export function stepsOf(events: readonly RunEvent[]): Step[] {
  const steps: Step[] = [];
  // What has not ended, the last first: a run has few of them at a time, and thousands of steps.
  let open: Step[] = [];
  for (const event of events) {
    if (event.kind === "run_forked") for (const step of steps) step.carried = true;
    if (event.kind === "run_recovered") {
      for (const step of open) step.interrupted = true;
      open = open.filter((step) => step.kind === "approval" || step.kind === "delegate");
      for (const step of open) step.interrupted = false;
    }
    const repeated = REPEATS.has(event.kind) ? open.find((step) => isOf(step, event)) : undefined;
    const ended = ENDS[event.kind] && open.find((step) => step.kind === ENDS[event.kind] && step.turn === event.turn && indexOf(step) === event.data.index);
    if (repeated) {
      repeated.retries += 1;
      repeated.events.push(event);
    } else if (ended) {
      ended.toMs = event.at_ms;
      ended.events.push(event);
      ended.failed ||= FAILS.has(event.kind) || event.data.failed === true || event.data.approved === false;
      open = open.filter((step) => step !== ended);
    } else {
      const step = begun(event);
      steps.push(step);
      if (step.toMs === undefined) open.unshift(step);
    }
  }
  return steps;
}

function begun(event: RunEvent): Step {
  const kind = BEGINS[event.kind];
  return {
    seq: event.seq,
    turn: event.turn,
    kind: event.kind === "run_recovered" ? "crash" : (kind ?? ENDS[event.kind] ?? "run"),
    title: titleOf(event),
    fromMs: event.at_ms,
    toMs: kind === undefined ? event.at_ms : undefined,
    failed: FAILS.has(event.kind),
    carried: false,
    interrupted: false,
    retries: 0,
    events: [event],
  };
}

function indexOf(step: Step): unknown {
  return step.events[0]!.data.index;
}

/** Return whether an event without an end of its own is about a step: the model's has no index, a tool's call has one. */
function isOf(step: Step, event: RunEvent): boolean {
  const index = event.data.index ?? undefined;
  return step.turn === event.turn && (index === undefined ? step.kind === "model" : step.kind === "tool" && indexOf(step) === index);
}

function titleOf(event: RunEvent): string {
  const { name } = event.data;
  if (event.kind === "model_asked") return `Model, turn ${event.turn}`;
  if (event.kind === "approval_requested") return `Approval of ${String(name)}`;
  const known = TITLES[event.kind];
  if (known !== undefined) return known;
  return typeof name === "string" ? name : event.kind.replaceAll("_", " ");
}

/** Return a row's event of one of these kinds, the last if there are several. */
export function eventOf(step: Step, ...kinds: string[]): RunEvent | undefined {
  return step.events.findLast((event) => kinds.includes(event.kind));
}

/** Which moment of a run an address names: an event's number, or what wrote a memory, in a turn. */
export interface Moment {
  at?: string;
  turn?: string;
  wrote?: string;
}

/** Return the row of a moment, by its number: undefined if the address names none, or the events are not read so far. */
export function rowAt(steps: readonly Step[], { at, turn, wrote }: Moment): number | undefined {
  if (at !== undefined) return steps.find((step) => step.seq === Number(at) || step.events.some((event) => event.seq === Number(at)))?.seq;
  if (turn === undefined) return undefined;
  const inTurn = steps.filter((step) => step.turn === Number(turn));
  const named = inTurn.find((step) => step.kind === "tool" && wrote !== undefined && text(eventOf(step, "tool_answered")?.data.content).includes(wrote));
  return (named ?? inTurn[0])?.seq;
}
