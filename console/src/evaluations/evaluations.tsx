import { Pages, type Retain, type Schemas } from "retain-client";

import { More, newest, Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { counted, time } from "../shown.ts";
import { Trend } from "./trend.tsx";

/** Datasets that are shown at once, and read with one request. */
export const DATASETS = 200;

/** The datasets of a tenant, each with its trend; and the runs, the newest first, each with the way to compare it. */
export function EvaluationsView({ retain, place }: { retain: Retain; place: Place }) {
  const found = useLoaded(async () => {
    const [datasets, runs] = await Promise.all([newest(datasetsOf(retain), DATASETS), newest(runsOf(retain))]);
    return { datasets, runs };
  }, []);
  return (
    <>
      <h1>Evaluations</h1>
      <Show of={found}>
        {({ datasets: [datasets, others], runs: [runs, more] }) => (
          <>
            <h2>Datasets</h2>
            {datasets.length === 0 && <Nothing>There is no dataset. Put one, or add a case in Recall.</Nothing>}
            <ul class="datasets">
              {datasets.map((one) => (
                <li key={one.name}>
                  <p>
                    <a href={addressOf(place.tenant, "datasets", one.name)}><b>{one.name}</b></a> <span class="quiet">{counted(one.cases, "case")} for {targetOf(one.target)}</span>
                  </p>
                  {one.description && <p>{one.description}</p>}
                  <Trend tenant={place.tenant} runs={runs.filter((run) => run.dataset === one.name)} />
                </li>
              ))}
            </ul>
            <More of={others} most={DATASETS} />
            <h2>Runs</h2>
            {runs.length === 0 && <Nothing>No dataset was run yet.</Nothing>}
            <ul class="rows evaluations">{runs.map((run, at) => <Row key={run.run_id} place={place} run={run} before={earlier(runs, at)} />)}</ul>
            <More of={more} />
          </>
        )}
      </Show>
    </>
  );
}

/** Return the datasets of a tenant, by name. */
export function datasetsOf(retain: Retain): Pages<Schemas["DatasetInfo"]> {
  return new Pages(async (cursor) => {
    const params = { path: { tenant: retain.tenant }, query: { ...cursor, limit: DATASETS } };
    const page = (await retain.api.GET("/v1/tenants/{tenant}/evals/datasets", { params })).data!;
    return [page.datasets, page.cursor];
  });
}

/** Return the runs over the datasets of a tenant, or over one, the newest first. */
export function runsOf(retain: Retain, dataset?: string): Pages<Schemas["ListedEvaluation"]> {
  return new Pages(async (cursor) => {
    const query = { ...cursor, ...(dataset !== undefined && { dataset }) };
    const page = (await retain.api.GET("/v1/tenants/{tenant}/evals/runs", { params: { path: { tenant: retain.tenant }, query } })).data!;
    return [page.runs, page.cursor];
  });
}

/** Return what a dataset evaluates, in words. */
export function targetOf(target: Record<string, unknown>): string {
  if (typeof target.agent === "string") return target.agent;
  const { agent_type, house } = (target.recall ?? {}) as { agent_type?: string; house?: string };
  return `recall as ${agent_type ?? house ?? "the tenant"}`;
}

/** Return the run of the same version of the dataset that came before. */
export function earlier(runs: readonly Schemas["ListedEvaluation"][], at: number): Schemas["ListedEvaluation"] | undefined {
  const { dataset, version } = runs[at]!;
  return runs.slice(at + 1).find((run) => run.dataset === dataset && run.version === version && run.state === "completed");
}

/** One run in a list. before: with which it is compared. */
export function Row({ place, run, before }: { place: Place; run: Schemas["ListedEvaluation"]; before: Schemas["ListedEvaluation"] | undefined }) {
  const share = run.total === 0 ? 0 : (run.passed / run.total) * 100;
  return (
    <li>
      <a href={addressOf(place.tenant, "evaluations", run.run_id, { against: before?.run_id })}><b>{run.dataset}</b></a>
      <span>{run.passed} of {run.total} passed{run.errored > 0 && `, ${run.errored} errored`}</span>
      <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect class="failed" y="0.5" width="100" height="3" /><rect class="tool" y="0.5" width={share} height="3" />
      </svg>
      <span><time>{time(run.created_at_ms)}</time> <span class={`status ${run.state}`}>{run.state}</span></span>
    </li>
  );
}
