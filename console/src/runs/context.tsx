import type { Schemas } from "retain-client";

import { addressOf } from "../place.ts";
import { counted } from "../shown.ts";

/** What of its memory a run's model read first. cut: by section, how much of it the budget left out. */
interface Read {
  records?: { id: string; score: number; shortened?: true }[];
  left_out?: { id: string; score: number }[];
  profile?: string[];
  messages?: string[];
  episodes?: unknown[];
  cut?: Record<string, number>;
  degraded?: string[];
}

/** Why a section may leave something out: the order in which the context's budget is given away. */
const WHY: Record<string, string> = {
  messages: "the newest messages get up to half of the room that instructions and input leave",
  conversation: "the summary gets what the messages leave, its newest lines first",
  profile: "facts of the user have a bound of their own in the agent’s definition",
  working: "notes get what the summary and the profile leave",
  records: "recalled memories have a bound of their own (recall_tokens), the best first",
  episodes: "earlier turns come last, the oldest are cut first",
};

/** What the run's model read before it was asked, and what the budget left out and why. */
export function Context({ run }: { run: Schemas["InspectedRun"] }) {
  const { records = [], left_out = [], profile = [], messages = [], episodes = [], cut = {}, degraded = [] } = run.input as Read;
  const link = (id: string) => <a href={addressOf(run.tenant_id, "memory", id)}>{id}</a>;
  return (
    <>
      <h2>Read before</h2>
      <p>
        {counted(records.length, "recalled memory", "recalled memories")}, {counted(profile.length, "fact")} of the user, {counted(messages.length, "message")},{" "}
        {counted(episodes.length, "earlier turn")}.
      </p>
      {Object.keys(cut).length === 0 && <p class="quiet">Nothing was cut.</p>}
      {Object.entries(cut).map(([section, number]) => (
        <p key={section} class="cut">Cut: {number.toLocaleString()} of {section}, as they did not fit: {WHY[section] ?? "the context was full"}.</p>
      ))}
      {degraded.length > 0 && <p class="failure">The recall did without: {degraded.join(", ")}</p>}
      <ul class="found">
        {records.map(({ id, score, shortened }) => <li key={id}>{link(id)} <span class="number">{score.toFixed(2)}{shortened && ", a passage of it"}</span></li>)}
        {left_out.map(({ id, score }) => <li key={id}>{link(id)} <span class="number">{score.toFixed(2)}</span> <b class="cut">did not fit</b></li>)}
        {profile.map((id) => <li key={id}>{link(id)} <span class="quiet">of the user</span></li>)}
      </ul>
    </>
  );
}
