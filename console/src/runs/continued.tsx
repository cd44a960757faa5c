import { useState } from "preact/hooks";
import type { Retain, Run, Schemas } from "retain-client";

import { Failure } from "../loading.tsx";
import { addressOf } from "../place.ts";

/** What a run took over from another one. */
interface Fork {
  run_id: string;
  turns: number;
}

/** The run that this one continues, if it does. */
export function Continues({ run }: { run: Schemas["InspectedRun"] }) {
  const fork = run.input.fork as Fork | undefined;
  if (fork === undefined) return null;
  return (
    <>
      <dt>Continues</dt>
      <dd><a href={addressOf(run.tenant_id, "runs", fork.run_id)}>{fork.run_id}</a>, {fork.turns === 1 ? "1 turn" : `${fork.turns} turns`}</dd>
    </>
  );
}

/** Begins another run that continues an ended one, and shows it. turns: how many are kept; absent for a retry. */
export function Continue({ retain, run, turns }: { retain: Retain; run: Schemas["InspectedRun"]; turns?: number }) {
  const [error, setError] = useState<unknown>(undefined);
  // Pressed again, also after an answer that was lost, it begins no second run.
  const [idempotencyKey] = useState(() => crypto.randomUUID());
  const { agent_type, instance_id, run_id, tenant_id } = run;
  const begin = (): Promise<Run> =>
    turns === undefined
      ? retain.runs.retry(agent_type, instance_id, run_id, { idempotencyKey })
      : retain.runs.fork(agent_type, instance_id, run_id, turns, { idempotencyKey });
  const show = (begun: Run) => {
    location.hash = addressOf(tenant_id, "runs", begun.run_id);
  };
  return (
    <p class="actions">
      <button onClick={() => begin().then(show, setError)}>{turns === undefined ? "Retry" : "Ask again from here"}</button>
      {error !== undefined && <Failure error={error} />}
    </p>
  );
}
