import type { Schemas } from "retain-client";

import { addressOf } from "../place.ts";
import { time } from "../shown.ts";

/** Runs that are drawn of a dataset. */
const MOST = 30;

/** The share of cases that passed in each run of a dataset, the oldest first; a change of the dataset's version is marked. */
export function Trend({ tenant, runs }: { tenant: string; runs: readonly Schemas["ListedEvaluation"][] }) {
  const scored = runs.filter((run) => run.scored_at_ms !== null && run.total > 0).slice(0, MOST).toReversed();
  if (scored.length < 2) return null;
  const x = (at: number) => 2 + (at / (scored.length - 1)) * 96;
  const y = (run: Schemas["ListedEvaluation"]) => 27 - (run.passed / run.total) * 24;
  const shares = scored.map((run) => Math.round((run.passed / run.total) * 100));
  return (
    <figure class="trend">
      <svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label={`Passed, the oldest run first: ${shares.map((one) => `${one} %`).join(", ")}`}>
        <path class="grid" d="M0 3H100M0 15H100M0 27H100" />
        {scored.map((run, at) => at > 0 && run.version !== scored[at - 1]!.version && <path key={run.run_id} class="version" d={`M${(x(at) + x(at - 1)) / 2} 1V29`} />)}
        <path class="line" d={scored.map((run, at) => `${at === 0 ? "M" : "L"}${x(at)} ${y(run)}`).join("")} />
      </svg>
      <figcaption class="quiet">
        passed: {shares[0]} % on {time(scored[0]!.created_at_ms)}, {shares.at(-1)} % on <a href={addressOf(tenant, "evaluations", scored.at(-1)!.run_id)}>{time(scored.at(-1)!.created_at_ms)}</a>
        {new Set(scored.map((run) => run.version)).size > 1 && "; a dashed line is a change of the dataset"}
      </figcaption>
    </figure>
  );
}
