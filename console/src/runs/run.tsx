import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Failure, Show } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { duration, text, time } from "../shown.ts";
import { Context } from "./context.tsx";
import { Continue, Continues } from "./continued.tsx";
import { useRun } from "./follow.ts";
import { type Step, stepsOf } from "./steps.ts";
import { Bar, type Drawn, scale } from "./timeline.tsx";

/** One run: what it was asked and answered, and everything that happened in it. */
export function RunView({ retain, runId }: { retain: Retain; runId: string }) {
  const [changes, setChanges] = useState(0);
  const found = useRun(retain, runId, changes);
  return (
    <Show of={found}>
      {({ run, events }) => (
        <>
          <h1>{run.agent_type} <span class={`status ${run.status}`}>{run.status}</span></h1>
          <Facts run={run} />
          <Answers retain={retain} run={run} changed={() => setChanges(changes + 1)} />
          <h2>Asked</h2>
          <pre>{text(run.input.input ?? run.input)}</pre>
          <h2>Answered</h2>
          <pre>{run.output ?? (run.error ? text(run.error) : "nothing yet")}</pre>
          <h2>Read before</h2>
          <Context run={run} />
          <h2>Timeline</h2>
          <Timeline retain={retain} run={run} steps={stepsOf(events)} />
        </>
      )}
    </Show>
  );
}

function Facts({ run }: { run: Schemas["InspectedRun"] }) {
  const ended = run.completed_at_ms;
  return (
    <dl class="facts">
      <dt>Run</dt><dd><code>{run.run_id}</code></dd>
      <dt>Instance</dt><dd>{run.instance_id}</dd>
      {run.user_id !== null && <><dt>User</dt><dd>{run.user_id}</dd></>}
      <dt>Began</dt><dd>{time(run.created_at_ms)}{ended !== null && `, took ${duration(ended - run.created_at_ms)}`}</dd>
      <dt>Model</dt><dd>{run.model}, {run.input_tokens} tokens read, {run.output_tokens} written</dd>
      <Continues run={run} />
      {run.parent_run_id !== null && (
        <><dt>Asked by</dt><dd><a href={addressOf(run.tenant_id, "runs", run.parent_run_id)}>{run.parent_run_id}</a></dd></>
      )}
      {run.delegated.map((one) => (
        <><dt>Delegated</dt><dd><a href={addressOf(run.tenant_id, "runs", one.run_id)}>{one.agent_type}</a> {one.status}</dd></>
      ))}
    </dl>
  );
}

/** What an operator may do now: answer the run's question, cancel it, or retry it. */
function Answers({ retain, run, changed }: { retain: Retain; run: Schemas["InspectedRun"]; changed: () => void }) {
  const [error, setError] = useState<unknown>(undefined);
  const act = (action: () => Promise<unknown>) => () => action().then(changed, setError);
  const { agent_type, instance_id, run_id, waiting_for } = run;
  if (run.status === "failed" || run.status === "cancelled") return <Continue retain={retain} run={run} />;
  if (run.completed_at_ms !== null) return null;
  return (
    <p class="actions">
      {waiting_for?.kind === "approval" && (
        <>
          <span>{waiting_for.tool} {text(waiting_for.arguments)}</span>
          <button onClick={act(() => retain.runs.approve(agent_type, instance_id, run_id, waiting_for.call))}>Approve</button>
          <button onClick={act(() => retain.runs.reject(agent_type, instance_id, run_id, waiting_for.call))}>Reject</button>
        </>
      )}
      <button onClick={act(() => retain.runs.cancel(agent_type, instance_id, run_id))}>Cancel</button>
      {error !== undefined && <Failure error={error} />}
    </p>
  );
}

function Timeline({ retain, run, steps }: { retain: Retain; run: Schemas["InspectedRun"]; steps: Step[] }) {
  const drawn = scale(steps, Date.now());
  return <ol class="timeline">{steps.map((step, at) => <Row key={step.seq} retain={retain} run={run} step={step} drawn={drawn[at]!} />)}</ol>;
}

/** One row of the timeline. Its events are written out when it is open: a long run has thousands. */
function Row({ retain, run, step, drawn }: { retain: Retain; run: Schemas["InspectedRun"]; step: Step; drawn: Drawn }) {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <span class={step.carried ? "title quiet" : "title"}>{step.title}{step.carried && ", before"}</span>
          <Bar step={step} {...drawn} />
          <span class="number">{step.toMs === undefined ? "…" : duration(step.toMs - step.fromMs)}</span>
        </summary>
        {open && recalled(step) && <Recalled run={run} step={step} />}
        {open && step.kind === "model" && run.completed_at_ms !== null && <Continue retain={retain} run={run} turns={step.turn - 1} />}
        {open && <pre>{step.events.map((event) => `${event.seq} ${event.kind}\n${text(event.data)}`).join("\n\n")}</pre>}
      </details>
    </li>
  );
}

function recalled(step: Step): boolean {
  return step.title === "recall_memory";
}

/** What a recall of the run found, and the way to why: the same query as of that time, with each part of the scores. */
function Recalled({ run, step }: { run: Schemas["InspectedRun"]; step: Step }) {
  const called = step.events[0]!.data.arguments as { query?: string } | undefined;
  const records = (step.events.at(-1)!.data.recalled ?? []) as [string, number][];
  const why = addressOf(run.tenant_id, "recall", undefined, {
    query: called?.query,
    agent_type: run.agent_type,
    user_id: run.user_id ?? undefined,
    as_of_ms: String(step.fromMs),
  });
  return (
    <>
      <ul class="found">
        {records.map(([id, score]) => (
          <li key={id}><a href={addressOf(run.tenant_id, "memory", id)}>{id}</a> <span class="number">{score.toFixed(3)}</span></li>
        ))}
      </ul>
      <p><a href={why}>Why these?</a></p>
    </>
  );
}
