import { useMemo, useRef, useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Nothing, Show } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { cost, counted, duration, text } from "../shown.ts";
import { Virtual } from "../virtual.tsx";
import { Continue } from "./continued.tsx";
import { useRun } from "./follow.ts";
import { Prompt } from "./prompt.tsx";
import { Recalled } from "./recalled.tsx";
import { eventOf, type Moment, rowAt, type Step, stepsOf } from "./steps.ts";
import { type Axis, axisOf, Bar, Scale } from "./timeline.tsx";

const USUAL_HEIGHT = 34;
/** A run with more delegates shows each one's timeline when its row is opened. */
const OPENED = 3;
/** Rows of a delegate that are shown in the timeline of the run that asked it. */
const NESTED = 200;

interface Shown {
  retain: Retain;
  run: Schemas["InspectedRun"];
  events: readonly Schemas["RunEvent"][];
}

/** The timeline of a run, a row for each step. moment: whose row is to be shown. */
export function Timeline({ retain, run, events, moment }: Shown & { moment: Moment }) {
  const [sought, setSought] = useState("");
  const nowMs = useMemo(() => Date.now(), [events]);
  const steps = useMemo(() => [...recallOf(run), ...stepsOf(events)], [events]);
  const at = useMemo(() => rowAt(steps, moment), [steps, moment.at, moment.turn, moment.wrote]);
  const axis = useMemo(() => axisOf(steps, nowMs), [steps]);
  const delegates = useMemo(() => delegatesOf(run, steps), [steps]);
  const found = useMemo(() => (sought === "" ? steps : steps.filter((step) => holds(step, sought.toLowerCase()))), [steps, sought]);
  const many = delegates.size > OPENED;
  // A row that was scrolled away is made again when it is scrolled back.
  const turned = useRef(new Map<number, boolean>()).current;
  return (
    <>
      {steps.length > 20 && (
        <p class="actions">
          <label>Find <input type="search" value={sought} onInput={(event) => setSought(event.currentTarget.value)} /></label>
          <span class="quiet" role="status">{counted(found.length, "row")}</span>
        </p>
      )}
      {steps.length === 0 && <Nothing>Nothing has happened yet.</Nothing>}
      {steps.length > 0 && found.length === 0 && <Nothing>No row has this text.</Nothing>}
      <Scale axis={axis} />
      <Virtual
        name="Timeline"
        keys={found.map((step) => step.seq)}
        usual={USUAL_HEIGHT}
        at={at}
        row={(index) => {
          const step = found[index]!;
          const delegate = delegates.get(step.seq);
          const opened = turned.get(step.seq) ?? (step.seq === at || (delegate !== undefined && !many));
          const turn = (open: boolean) => turned.set(step.seq, open);
          // A row that becomes the one to be shown is opened, whatever it was before.
          return <Row key={step.seq === at ? "shown" : "row"} retain={retain} run={run} events={events} step={step} axis={axis} nowMs={nowMs} delegate={delegate} opened={opened || step.seq === at} turn={turn} />;
        }}
      />
    </>
  );
}

/** The timeline of a run that another one delegated, in its time. */
function Nested({ retain, runId, axis }: { retain: Retain; runId: string; axis: Axis }) {
  const found = useRun(retain, runId, 0);
  return (
    <Show of={found}>
      {({ run, events }) => {
        const steps = [...recallOf(run), ...stepsOf(events)];
        const delegates = delegatesOf(run, steps);
        return (
          <div class="nested">
            <p><a href={addressOf(run.tenant_id, "runs", run.run_id)}>{run.agent_type}</a> <span class={`status ${run.status}`}>{run.status}</span></p>
            <ol aria-label={`Timeline of ${run.agent_type}`}>
              {steps.slice(0, NESTED).map((step) => (
                <li key={step.seq}>
                  <Row retain={retain} run={run} events={events} step={step} axis={axis} nowMs={Date.now()} delegate={delegates.get(step.seq)} opened={false} />
                </li>
              ))}
            </ol>
            {steps.length > NESTED && <p class="quiet">The first {NESTED} rows of {steps.length.toLocaleString()} are shown: open the run for the others.</p>}
          </div>
        );
      }}
    </Show>
  );
}

interface Drawn extends Shown {
  step: Step;
  axis: Axis;
  nowMs: number;
  delegate: string | undefined;
  opened: boolean;
  /** Hears whether the row is open. */
  turn?: (open: boolean) => void;
}

function Row({ retain, run, events, step, axis, nowMs, delegate, opened, turn }: Drawn) {
  const [open, setOpen] = useState(opened);
  const toggled = (now: boolean) => {
    setOpen(now);
    turn?.(now);
  };
  return (
    <details class="step" open={open} onToggle={(event) => event.target === event.currentTarget && toggled(event.currentTarget.open)}>
      <summary>
        <span class={`title ${step.carried ? "quiet" : ""}`}>
          <span class={`dot ${step.failed ? "failed" : step.kind}`} />
          {step.title}{step.carried && ", before"}
          {step.interrupted && <b class="mark">interrupted</b>}
          {step.retries > 0 && <b class="mark">{counted(step.retries, "retry", "retries")}</b>}
        </span>
        <Bar step={step} axis={axis} nowMs={nowMs} />
        <span class="number">{step.interrupted ? "–" : step.toMs === undefined ? "…" : duration(step.toMs - step.fromMs)}</span>
      </summary>
      {open && (
        <div class="body">
          {delegate === undefined ? <Content retain={retain} run={run} events={events} step={step} /> : (
            <>
              <Nested retain={retain} runId={delegate} axis={axis} />
              <details><summary>Arguments and answer</summary><Content retain={retain} run={run} events={events} step={step} /></details>
            </>
          )}
          <p class="quiet">
            {step.seq > 0 && <a href={addressOf(run.tenant_id, "runs", run.run_id, { at: String(step.seq) })}>Link to this moment</a>}
          </p>
        </div>
      )}
    </details>
  );
}

function Content({ retain, run, events, step }: Shown & { step: Step }) {
  const may = useMay();
  const called = eventOf(step, "tool_called", "approval_requested");
  const answered = eventOf(step, "tool_answered");
  if (step.kind === "recall") return <Recalled retain={retain} run={run} step={step} />;
  if (step.kind === "model") {
    return (
      <>
        <ModelCall step={step} />
        <Prompt retain={retain} run={run} events={events} step={step} />
        {run.completed_at_ms !== null && may("fork_run") && <Continue retain={retain} run={run} turns={step.turn - 1} />}
      </>
    );
  }
  const others = step.events.filter((event) => event !== called && event !== answered);
  return (
    <>
      {called && <><h3>Arguments</h3><pre>{text(called.data.arguments)}</pre></>}
      {step.title === "recall_memory" && <Recalled retain={retain} run={run} step={step} />}
      {answered && (
        <details open={step.title !== "recall_memory"}>
          <summary>Answer</summary>
          <pre class={step.failed ? "bad" : ""}>{readable(answered.data.content)}</pre>
        </details>
      )}
      {typeof answered?.data.traceback === "string" && <pre class="bad">{answered.data.traceback}</pre>}
      {others.map((event) => <pre key={event.seq}>{`${event.kind}\n${text(event.data)}`}</pre>)}
    </>
  );
}

/** What a call of the model cost, and what the model wrote. */
function ModelCall({ step }: { step: Step }) {
  const asked = eventOf(step, "model_asked");
  const answered = eventOf(step, "model_answered", "answer_dropped");
  const cut = (asked?.data.cut ?? []) as number[];
  const messages = Number(asked?.data.messages_cut ?? 0);
  const calls = (answered?.data.calls ?? []) as { name: string; arguments: unknown }[];
  const repeated = step.events.filter((event) => event.kind === "call_retried" || event.kind === "model_unavailable");
  return (
    <>
      {answered && (
        <p>
          {counted(Number(answered.data.input_tokens ?? 0), "token")} read{Number(answered.data.cached_input_tokens ?? 0) > 0 && <> ({Number(answered.data.cached_input_tokens).toLocaleString()} from a cache)</>}, {counted(Number(answered.data.output_tokens ?? 0), "token")} written, {cost(answered.cost)}
          {answered.data.finish_reason != null && <>, ended by {String(answered.data.finish_reason)}</>}
        </p>
      )}
      {cut.length > 0 && <p class="cut">Cut: {cut.length === 1 ? "turn" : "turns"} {cut.join(", ")} no longer fit the context; the model reads a summary instead.</p>}
      {messages > 0 && <p class="cut">Cut: {counted(messages, "message")} before the input no longer fit the context.</p>}
      {repeated.map((event) => (
        <p key={event.seq} class="cut">{event.kind === "call_retried" ? `Repeated after ${duration(Number(event.data.delay_ms))}` : "The model's server did not answer, and the run waited"}: {String(event.data.code)}</p>
      ))}
      {typeof answered?.data.message === "string" && <p class="failure">{answered.data.message}</p>}
      {answered?.data.content ? <><h3>It wrote</h3><pre>{text(answered.data.content)}</pre></> : null}
      {calls.length > 0 && <><h3>It called</h3><pre>{calls.map((call) => `${call.name} ${text(call.arguments)}`).join("\n")}</pre></>}
    </>
  );
}

/** The recall for a run's context, which comes before its events: a row of its own, with the number 0. */
function recallOf(run: Schemas["InspectedRun"]): Step[] {
  const { records = [], left_out = [] } = run.input as { records?: unknown[]; left_out?: unknown[] };
  if (records.length + left_out.length === 0) return [];
  const at = { fromMs: run.created_at_ms, toMs: run.created_at_ms, turn: 0, seq: 0 };
  return [{ ...at, kind: "recall", title: "Recall for the context", failed: false, carried: false, interrupted: false, retries: 0, events: [] }];
}

/** Return the run that each call of `delegate` began, by the number of the call's event: calls and runs have one order. */
export function delegatesOf(run: Pick<Schemas["InspectedRun"], "delegated">, steps: readonly Step[]): Map<number, string> {
  const left = [...run.delegated];
  const found = new Map<number, string>();
  for (const step of steps) {
    if (step.kind !== "tool" || step.title !== "delegate") continue;
    const { agent } = (step.events[0]!.data.arguments ?? {}) as { agent?: string };
    const at = left.findIndex((one) => agent === undefined || one.agent_type === agent);
    if (at >= 0) found.set(step.seq, left.splice(at, 1)[0]!.run_id);
  }
  return found;
}

function holds(step: Step, sought: string): boolean {
  return step.title.toLowerCase().includes(sought) || step.events.some((event) => JSON.stringify(event.data).toLowerCase().includes(sought));
}

/** Return an answer as text; one that is JSON is written out. */
function readable(content: unknown): string {
  if (typeof content !== "string" || !/^[[{]/.test(content)) return text(content);
  try {
    return text(JSON.parse(content));
  } catch {
    return content;
  }
}
