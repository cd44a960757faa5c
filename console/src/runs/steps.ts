import type { Schemas } from "retain-client";

type RunEvent = Schemas["RunEvent"];

/** One row of a timeline: a side effect with its beginning and its end, or something that happened at once. */
export interface Step {
  /** Of its first event, which is the row's address. */
  seq: number;
  turn: number;
  /** `model`, `tool`, `approval`, `delegate` or `run`. */
  kind: string;
  title: string;
  fromMs: number;
  /** undefined: it has not ended. */
  toMs: number | undefined;
  failed: boolean;
  /** Taken over from the run that this one continues. */
  carried: boolean;
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
const FAILS = new Set(["answer_dropped", "run_failed", "run_cancelled"]);

/** Fold a run's events, in their order, into the rows of its timeline. */
export function stepsOf(events: readonly RunEvent[]): Step[] {
  const steps: Step[] = [];
  for (const event of events) {
    if (event.kind === "run_forked") for (const step of steps) step.carried = true;
    const begun = BEGINS[event.kind];
    const open = ENDS[event.kind] && steps.findLast((step) => step.toMs === undefined && continues(step, event));
    if (open) {
      open.toMs = event.at_ms;
      open.events.push(event);
      open.failed ||= FAILS.has(event.kind) || event.data.failed === true || event.data.approved === false;
    } else {
      steps.push({
        seq: event.seq,
        turn: event.turn,
        kind: begun ?? ENDS[event.kind] ?? "run",
        title: titleOf(event),
        fromMs: event.at_ms,
        toMs: begun === undefined ? event.at_ms : undefined,
        failed: FAILS.has(event.kind),
        carried: false,
        events: [event],
      });
    }
  }
  return steps;
}

function continues(step: Step, event: RunEvent): boolean {
  const first = step.events[0]!;
  return step.kind === ENDS[event.kind] && step.turn === event.turn && first.data.index === event.data.index;
}

function titleOf(event: RunEvent): string {
  const { name } = event.data;
  if (event.kind === "model_asked") return `Model, turn ${event.turn}`;
  if (event.kind === "approval_requested") return `Approval of ${String(name)}`;
  if (event.kind === "run_suspended") return "Waits for a delegate";
  return typeof name === "string" ? name : event.kind.replaceAll("_", " ");
}
