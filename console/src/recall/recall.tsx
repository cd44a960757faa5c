import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { Parts } from "./parts.tsx";

const TOP_K = 10;

/** Try a query: what is recalled, and what each score is made of. */
export function RecallView({ retain, place }: { retain: Retain; place: Place }) {
  const { query, other, agent_type, house, user_id, as_of_ms } = place.query;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    location.hash = addressOf(place.tenant, "recall", undefined, given);
  };
  return (
    <>
      <h1>Recall</h1>
      <form key={JSON.stringify(place.query)} class="conditions" role="search" onSubmit={submit}>
        <label class="wide">Query <input name="query" required defaultValue={query ?? ""} /></label>
        <label class="wide">Compared with another query <input name="other" defaultValue={other ?? ""} /></label>
        <label>Agent <input name="agent_type" defaultValue={agent_type ?? ""} /></label>
        <label>House <input name="house" defaultValue={house ?? ""} /></label>
        <label>User <input name="user_id" defaultValue={user_id ?? ""} /></label>
        <label>As of (ms) <input name="as_of_ms" inputMode="numeric" defaultValue={as_of_ms ?? ""} /></label>
        <button>Recall</button>
      </form>
      <div class="columns">
        {[query, other].filter((asked) => asked !== undefined).map((asked) => (
          <section key={asked} aria-label={asked}>
            {other !== undefined && <h2>{asked}</h2>}
            <Found retain={retain} place={place} query={asked} />
          </section>
        ))}
      </div>
    </>
  );
}

function Found({ retain, place, query }: { retain: Retain; place: Place; query: string }) {
  const { agent_type, house, user_id, as_of_ms } = place.query;
  const body = {
    query,
    top_k: TOP_K,
    min_score: 0,
    explain: true,
    ...(agent_type && { agent_type }),
    ...(house && { house }),
    ...(user_id && { user_id }),
    ...(as_of_ms && { as_of_ms: Number(as_of_ms) }),
  };
  const found = useLoaded(() => retain.memories.recall(body), [JSON.stringify(body)]);
  return (
    <Show of={found}>
      {(recall) => (
        <>
          {recall.degraded.length > 0 && <p class="failure">This recall did without: {recall.degraded.join(", ")}</p>}
          {recall.memories.length === 0 && <p class="quiet">Nothing is recalled.</p>}
          <ol class="recalled">{recall.memories.map((memory) => <Row key={memory.id} memory={memory} />)}</ol>
        </>
      )}
    </Show>
  );
}

function Row({ memory }: { memory: Schemas["RecalledMemory"] }) {
  return (
    <li>
      <a href={addressOf(memory.tenant_id, "memory", memory.id)}>{memory.content}</a>
      <span class="number">{memory.score.toFixed(3)}</span>
      <Parts of={memory.components ?? {}} />
    </li>
  );
}
