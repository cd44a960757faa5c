import type { Schemas } from "retain-client";

import { addressOf } from "../place.ts";

/** What of its memory a run's model read first. cut: by section, how much of it the budget left out. */
interface Read {
  records?: { id: string; score: number; shortened?: true }[];
  profile?: string[];
  messages?: string[];
  episodes?: unknown[];
  cut?: Record<string, number>;
  degraded?: string[];
}

/** What the run's model read before it was asked, and what the budget left out. */
export function Context({ run }: { run: Schemas["InspectedRun"] }) {
  const { records = [], profile = [], messages = [], episodes = [], cut = {}, degraded = [] } = run.input as Read;
  const counted = [`${records.length} recalled memories`, `${profile.length} facts of the user`, `${messages.length} messages`, `${episodes.length} earlier turns`];
  const left = Object.entries(cut).map(([section, number]) => `${number} of ${section}`);
  return (
    <>
      <p>{counted.join(", ")}.{left.length > 0 && ` Left out, as they did not fit: ${left.join(", ")}.`}</p>
      {degraded.length > 0 && <p class="failure">The recall did without: {degraded.join(", ")}</p>}
      <ul class="found">
        {records.map(({ id, score, shortened }) => (
          <li key={id}>
            <a href={addressOf(run.tenant_id, "memory", id)}>{id}</a> <span class="number">{score.toFixed(3)}{shortened && ", a passage of it"}</span>
          </li>
        ))}
        {profile.map((id) => <li key={id}><a href={addressOf(run.tenant_id, "memory", id)}>{id}</a> <span class="quiet">of the user</span></li>)}
      </ul>
    </>
  );
}
