import { Pages, type Retain, type Schemas } from "retain-client";

import { More, newest, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { time } from "../shown.ts";

/** The runs of evaluations of a tenant, the newest first, each with the way to compare it with the one before. */
export function EvaluationsView({ retain, place }: { retain: Retain; place: Place }) {
  const found = useLoaded(() => {
    const path = { tenant: retain.tenant };
    return newest(
      new Pages(async (cursor) => {
        const page = (await retain.api.GET("/v1/tenants/{tenant}/evals/runs", { params: { path, query: cursor } })).data!;
        return [page.runs, page.cursor];
      }),
    );
  }, []);
  return (
    <>
      <h1>Evaluations</h1>
      <Show of={found}>
        {([runs, more]) => (
          <>
            {runs.length === 0 && <p class="quiet">No dataset was run yet.</p>}
            <ul class="rows">{runs.map((run, at) => <Row key={run.run_id} place={place} run={run} before={earlier(runs, at)} />)}</ul>
            <More of={more} />
          </>
        )}
      </Show>
    </>
  );
}

/** Return the run of the same version of the dataset that came before. */
function earlier(runs: readonly Schemas["ListedEvaluation"][], at: number): Schemas["ListedEvaluation"] | undefined {
  const { dataset, version } = runs[at]!;
  return runs.slice(at + 1).find((run) => run.dataset === dataset && run.version === version && run.state === "completed");
}

function Row({ place, run, before }: { place: Place; run: Schemas["ListedEvaluation"]; before: Schemas["ListedEvaluation"] | undefined }) {
  const share = run.total === 0 ? 0 : (run.passed / run.total) * 100;
  return (
    <li>
      <a href={addressOf(place.tenant, "evaluations", run.run_id, { against: before?.run_id })}><b>{run.dataset}</b></a>
      <span>{run.passed} of {run.total} passed{run.errored > 0 && `, ${run.errored} errored`}</span>
      <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
        <rect class="failed" width="100" height="4" /><rect class="tool" width={share} height="4" />
      </svg>
      <time>{time(run.created_at_ms)} <span class={`status ${run.state}`}>{run.state}</span></time>
    </li>
  );
}
