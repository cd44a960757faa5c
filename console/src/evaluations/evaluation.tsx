import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { text } from "../shown.ts";

/** The least passed first: what failed is what is looked for. */
const ORDER = ["errored", "failed", "passed"];

interface Shown {
  run: Schemas["Evaluation"];
  results: Schemas["Result"][];
  verdicts: Map<string, string>;
}

/** One run of an evaluation, case by case, what failed first; compared with another run where there is one. */
export function EvaluationView({ retain, place, id }: { retain: Retain; place: Place; id: string }) {
  const { against } = place.query;
  const found = useLoaded(async (): Promise<Shown> => {
    const path = { tenant: retain.tenant, run_id: id };
    const get = async (query: { cursor?: number }) =>
      (await retain.api.GET("/v1/tenants/{tenant}/evals/runs/{run_id}", { params: { path, query } })).data!;
    const run = await get({});
    const results = [...run.results];
    for (let cursor = run.cursor; cursor !== null; ) {
      const page = await get({ cursor: Number(cursor) });
      results.push(...page.results);
      cursor = page.cursor;
    }
    const params = { path: { ...path, against: against ?? "" } };
    const compared = against && (await retain.api.GET("/v1/tenants/{tenant}/evals/runs/{run_id}/compare/{against}", { params })).data!;
    return { run, results, verdicts: new Map(compared ? compared.cases.map((one) => [one.case_id, one.verdict]) : []) };
  }, [id, against]);
  return (
    <Show of={found}>
      {({ run, results, verdicts }) => (
        <>
          <h1>{run.dataset} <span class={`status ${run.state}`}>{run.state}</span></h1>
          {against && <p>Compared with <a href={addressOf(place.tenant, "evaluations", against)}>{against}</a></p>}
          <h2>Cases</h2>
          <ul class="cases">
            {results.toSorted((one, other) => rank(one) - rank(other)).map((result) => (
              <Case key={result.case_id} result={result} verdict={verdicts.get(result.case_id)} />
            ))}
          </ul>
        </>
      )}
    </Show>
  );
}

function rank(result: Schemas["Result"]): number {
  return ORDER.indexOf(result.outcome ?? "");
}

function Case({ result, verdict }: { result: Schemas["Result"]; verdict: string | undefined }) {
  return (
    <li>
      <details>
        <summary>
          <b>{result.case_id}</b> <span class={`status ${result.outcome === "passed" ? "completed" : "failed"}`}>{result.outcome ?? result.state}</span>{" "}
          {verdict !== undefined && verdict !== "equal" && <span>{verdict}</span>}
        </summary>
        <pre>{text(result)}</pre>
      </details>
    </li>
  );
}
