import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Failure, Nothing } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { counted, time } from "../shown.ts";

/** Instances that are asked at a time: each is a request to its object, which it wakes. */
const AT_ONCE = 20;

type Named = Schemas["Conversation"];

/** An instance that D1 is owed something of, or that did not answer. */
interface Asked {
  instance: Named;
  owed: Schemas["OwedEntries"] | undefined;
}

interface Found {
  behind: Asked[];
  asked: number;
  cursor: string | null | undefined;
}

/** The outboxes of instances, of which D1 knows nothing: they are asked, a page at a time, those with the newest runs first. */
export function Outboxes({ retain }: { retain: Retain }) {
  const [found, setFound] = useState<Found>({ behind: [], asked: 0, cursor: undefined });
  const [error, setError] = useState<unknown>(undefined);
  const [asking, setAsking] = useState(false);
  const ask = () => {
    setAsking(true);
    setError(undefined);
    more(retain, found).then(setFound, setError).finally(() => setAsking(false));
  };
  const { behind, asked, cursor } = found;
  return (
    <>
      <h3>Outboxes of instances</h3>
      <p class="quiet">What an instance has written and D1 does not have yet. Usually that is nothing; it is written again until D1 takes it.</p>
      <ul class="rows">
        {behind.map(({ instance, owed }) => (
          <li key={`${instance.agent_type} ${instance.instance_id}`}>
            <span><a href={addressOf(retain.tenant, "runs", instance.last_run_id)}><b>{instance.agent_type}</b></a> {instance.instance_id}</span>
            <span>{owed === undefined ? <span class="failure">did not answer</span> : counted(owed.entries, "entry", "entries")}</span>
            <span class="quiet">{owed !== undefined && `${counted(owed.attempts, "attempt")} so far`}</span>
            <time>{owed?.due_at_ms != null && `next ${time(owed.due_at_ms)}`}</time>
          </li>
        ))}
      </ul>
      {asked > 0 && behind.length === 0 && <Nothing>Nothing is owed by {counted(asked, "instance")}.</Nothing>}
      {cursor === null && asked === 0 && <Nothing>There is no instance.</Nothing>}
      {error !== undefined && <Failure error={error} />}
      <p class="actions">
        {cursor !== null && <button disabled={asking} onClick={ask}>{asking ? "Asking …" : asked === 0 ? `Ask the ${AT_ONCE} newest` : `Ask the next ${AT_ONCE}`}</button>}
        {asked > 0 && <span class="quiet" role="status">{counted(asked, "instance")} asked{cursor === null && ": all that D1 knows"}</span>}
      </p>
    </>
  );
}

/** Ask the next instances, and return what is known with their answers. */
async function more(retain: Retain, known: Found): Promise<Found> {
  const query = { limit: AT_ONCE, delegated: true, ...(known.cursor != null && { cursor: known.cursor }) };
  const page = (await retain.api.GET("/v1/agents/{tenant}/instances", { params: { path: { tenant: retain.tenant }, query } })).data!;
  const answers = await Promise.all(page.instances.map((instance) => owedBy(retain, instance)));
  const behind = answers.filter(({ owed }) => owed === undefined || owed.entries > 0);
  return { behind: [...known.behind, ...behind], asked: known.asked + answers.length, cursor: page.cursor };
}

async function owedBy(retain: Retain, instance: Named): Promise<Asked> {
  const { agent_type, instance_id } = instance;
  const path = { tenant: retain.tenant, agent_type, instance_id };
  const answer = await retain.api.GET("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", { params: { path } }).catch(() => undefined);
  return { instance, owed: answer?.data?.owed };
}
