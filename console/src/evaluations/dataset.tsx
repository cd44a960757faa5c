import { useState } from "preact/hooks";
import type { Retain } from "retain-client";

import { useMay } from "../access.tsx";
import { Failure, More, newest, Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { counted, text } from "../shown.ts";
import { earlier, Row, runsOf, targetOf } from "./evaluations.tsx";
import { Trend } from "./trend.tsx";

/** One dataset: its trend, its runs and its cases; it is run from here. */
export function DatasetView({ retain, place, name }: { retain: Retain; place: Place; name: string }) {
  const may = useMay();
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant, name } };
    const [dataset, runs] = await Promise.all([retain.api.GET("/v1/tenants/{tenant}/evals/datasets/{name}", { params }), newest(runsOf(retain, name))]);
    return { dataset: dataset.data!, runs };
  }, [name]);
  return (
    <>
      <h1>{name}</h1>
      <Show of={found}>
        {({ dataset, runs: [runs, more] }) => (
          <>
            <p>{dataset.description || counted(dataset.cases.length, "case")}, for {targetOf(dataset.target)}. Version <code>{dataset.version.slice(0, 12)}</code></p>
            {may("start_evaluation") && <Start retain={retain} name={name} />}
            <Trend tenant={place.tenant} runs={runs} />
            <h2>Runs</h2>
            {runs.length === 0 && <Nothing>It was not run yet.</Nothing>}
            <ul class="rows evaluations">{runs.map((run, at) => <Row key={run.run_id} place={place} run={run} before={earlier(runs, at)} />)}</ul>
            <More of={more} />
            <h2>Cases</h2>
            <ul class="cases">
              {dataset.cases.map((one, at) => (
                <li key={at}>{one === null ? <span class="quiet">erased</span> : <details><summary><b>{String(one.id)}</b></summary><pre>{text(one)}</pre></details>}</li>
              ))}
            </ul>
          </>
        )}
      </Show>
    </>
  );
}

/** Runs the dataset: the first cases are executed at once, the others as the run is looked at. */
function Start({ retain, name }: { retain: Retain; name: string }) {
  const [state, setState] = useState<{ error: unknown } | "running" | undefined>(undefined);
  const start = () => {
    setState("running");
    const params = { path: { tenant: retain.tenant }, header: { "idempotency-key": crypto.randomUUID() } };
    retain.api.POST("/v1/tenants/{tenant}/evals/runs", { params, body: { dataset: name } }).then(
      ({ data }) => (location.hash = addressOf(retain.tenant, "evaluations", data!.run.run_id)),
      (error: unknown) => setState({ error }),
    );
  };
  return (
    <p class="actions">
      <button class="primary" disabled={state === "running"} onClick={start}>{state === "running" ? "Running …" : "Run it"}</button>
      {typeof state === "object" && <Failure error={state.error} />}
    </p>
  );
}
