import { useEffect, useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Failure, newest, Nothing, Show, useChanges, useLoaded } from "../loading.tsx";
import { Difference } from "../memory/history.tsx";
import { addressOf, type Place } from "../place.ts";
import { counted, text, time, words } from "../shown.ts";
import { runsOf } from "./evaluations.tsx";

/** The least passed first: what failed is what is looked for. */
const ORDER = ["errored", "failed", "passed"];
const AGAIN_MS = 1_000;

type Result = Schemas["Result"];
type Compared = Schemas["Comparison"];

interface Shown {
  run: Schemas["Evaluation"];
  results: Result[];
  /** Of the run that it is compared with, by case. */
  others: Map<string, Result>;
  compared: Compared | undefined;
  /** Other runs over the same version. */
  comparable: Schemas["ListedEvaluation"][];
}

/** One run of an evaluation, case by case, what failed first; compared with another run where there is one. */
export function EvaluationView({ retain, place, id }: { retain: Retain; place: Place; id: string }) {
  const { against } = place.query;
  const [changes, changed] = useChanges();
  const [stopped, setStopped] = useState<unknown>(undefined);
  const found = useLoaded(async (): Promise<Shown> => {
    const [{ run, results }, other] = await Promise.all([withResults(retain, id), against ? withResults(retain, against) : undefined]);
    const params = { path: { tenant: retain.tenant, run_id: id, against: against ?? "" } };
    const compared = against && run.state !== "running" ? (await retain.api.GET("/v1/tenants/{tenant}/evals/runs/{run_id}/compare/{against}", { params })).data! : undefined;
    const [runs] = await newest(runsOf(retain, run.dataset));
    const comparable = runs.filter((one) => one.version === run.version && one.run_id !== id && one.state === "completed");
    return { run, results, compared, comparable, others: new Map((other?.results ?? []).map((one) => [one.case_id, one])) };
  }, [id, against], { changes });
  return (
    <Show of={found}>
      {({ run, results, others, compared, comparable }) => {
        const verdicts = new Map((compared?.cases ?? []).map((one) => [one.case_id, one]));
        const worst = (one: Result) => ORDER.indexOf(one.outcome ?? "") * 10 + (verdicts.get(one.case_id)?.verdict === "worse" ? 0 : 1);
        return (
          <>
            <div class="head"><h1><a href={addressOf(place.tenant, "datasets", run.dataset)}>{run.dataset}</a></h1><span class={`status ${run.state}`}>{run.state}</span></div>
            <p>
              {time(run.created_at_ms)}: {run.summary.passed} of {counted(run.summary.total, "case")} passed
              {run.summary.failed > 0 && `, ${run.summary.failed} failed`}{run.summary.errored > 0 && `, ${run.summary.errored} errored`}{run.summary.open > 0 && `, ${run.summary.open} open`}.
            </p>
            {run.state !== "completed" && <Resumed retain={retain} run={run} stopped={setStopped} changed={changed} />}
            {run.state !== "completed" && stopped !== undefined && <Failure error={stopped} />}
            <Averages run={run} compared={compared} />
            <p class="actions">
              <label>Compared with{" "}
                <select value={against ?? ""} onChange={(event) => (location.hash = addressOf(place.tenant, "evaluations", id, { against: event.currentTarget.value }))}>
                  <option value="">no other run</option>
                  {comparable.map((one) => <option key={one.run_id} value={one.run_id}>{time(one.created_at_ms)}, {one.passed} of {one.total}</option>)}
                </select>
              </label>
              {compared && <span class="quiet">{Object.entries(compared.counts).map(([verdict, count]) => `${count} ${verdict}`).join(", ")}</span>}
            </p>
            <h2>Cases</h2>
            {results.length === 0 && <Nothing>No case is scored yet.</Nothing>}
            <ul class="cases">
              {results.toSorted((one, other) => worst(one) - worst(other)).map((result) => (
                <Case key={result.case_id} result={result} compared={verdicts.get(result.case_id)} other={others.get(result.case_id)} />
              ))}
            </ul>
          </>
        );
      }}
    </Show>
  );
}

async function withResults(retain: Retain, id: string): Promise<{ run: Schemas["Evaluation"]; results: Result[] }> {
  const path = { tenant: retain.tenant, run_id: id };
  const get = async (query: { cursor?: number }) => (await retain.api.GET("/v1/tenants/{tenant}/evals/runs/{run_id}", { params: { path, query } })).data!;
  const run = await get({});
  const results = [...run.results];
  for (let cursor = run.cursor; cursor !== null; ) {
    const page = await get({ cursor: Number(cursor) });
    results.push(...page.results);
    cursor = page.cursor;
  }
  return { run, results };
}

/** Continues a run that has open cases while somebody looks at it. stopped: hears why it did not continue, undefined if it did. */
function Resumed({ retain, run, stopped, changed }: {
  retain: Retain;
  run: Schemas["Evaluation"];
  stopped: (error: unknown) => void;
  changed: () => void;
}) {
  const may = useMay()("resume_evaluation");
  useEffect(() => {
    let current = true;
    const params = { path: { tenant: retain.tenant, run_id: run.run_id } };
    const work = may ? retain.api.POST("/v1/tenants/{tenant}/evals/runs/{run_id}", { params }) : Promise.resolve();
    const again = () => setTimeout(() => current && changed(), AGAIN_MS);
    work.then(() => stopped(undefined), stopped).then(again);
    return () => {
      current = false;
    };
  }, [run]);
  return <p class="quiet" role="status">{may ? "Its cases are being executed …" : "It continues with the daily work, or when an operator opens it."}</p>;
}

function Averages({ run, compared }: { run: Schemas["Evaluation"]; compared: Compared | undefined }) {
  const averages = Object.entries(run.summary.averages ?? {});
  return (
    <dl class="facts">
      {averages.map(([name, value]) => {
        const delta = compared?.averages[name]?.delta;
        const threshold = run.thresholds[name];
        return (
          <>
            <dt>{words(name)}</dt>
            <dd>
              {value.toFixed(3)}
              {threshold !== undefined && <span class={run.summary.below.includes(name) ? "failure" : "quiet"}> of {threshold} wanted</span>}
              {delta != null && delta !== 0 && <b class={delta > 0 ? "up" : "down"}> {delta > 0 ? "+" : ""}{delta.toFixed(3)}</b>}
            </dd>
          </>
        );
      })}
    </dl>
  );
}

function Case({ result, compared, other }: { result: Result; compared: Compared["cases"][number] | undefined; other: Result | undefined }) {
  const verdict = compared?.verdict === "equal" ? undefined : compared?.verdict;
  return (
    <li>
      <details>
        <summary>
          <b>{result.case_id}</b> <span class={`status ${result.outcome === "passed" ? "completed" : "failed"}`}>{result.outcome ?? result.state}</span>{" "}
          {verdict !== undefined && <b class={verdict === "better" ? "up" : "down"}>{verdict}</b>}
        </summary>
        {result.error && <p class="failure">{text(result.error)}</p>}
        <ul class="scores">
          {result.scores.map((score) => (
            <li key={score.name} class={score.passed === false ? "failure" : ""}>
              {words(score.name)} <b>{score.value.toFixed(2)}</b>
              {compared?.deltas[score.name] ? ` (${compared.deltas[score.name]! > 0 ? "+" : ""}${compared.deltas[score.name]!.toFixed(2)})` : ""}{" "}
              {score.detail && <span class="quiet">{score.detail}</span>}
            </li>
          ))}
        </ul>
        <h3>Output</h3>
        {other === undefined || other.output === result.output
          ? <pre>{result.output ?? "none"}</pre>
          : <pre><Difference before={other.output ?? ""} after={result.output ?? ""} /></pre>}
        <details><summary>What it did</summary><pre>{text(result.observed)}</pre></details>
      </details>
    </li>
  );
}
