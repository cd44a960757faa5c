import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { time } from "../shown.ts";

const PAGE = 50;

/** The memories of a tenant, a user or an agent. */
export function MemoriesView({ retain, place }: { retain: Retain; place: Place }) {
  const load = async () => {
    const params = { path: { tenant: retain.tenant }, query: { ...place.query, limit: PAGE } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params })).data!;
  };
  const found = useLoaded(load, [JSON.stringify(place.query)]);
  const { cursor: _, ...conditions } = place.query;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = Object.fromEntries(new FormData(event.currentTarget as HTMLFormElement)) as Record<string, string>;
    location.hash = addressOf(place.tenant, "memory", undefined, given);
  };
  return (
    <>
      <h1>Memory</h1>
      <form key={JSON.stringify(place.query)} class="conditions" role="search" onSubmit={submit}>
        <label>Agent <input name="agent_type" defaultValue={conditions.agent_type ?? ""} /></label>
        <label>House <input name="house" defaultValue={conditions.house ?? ""} /></label>
        <label>User <input name="user_id" defaultValue={conditions.user_id ?? ""} /></label>
        <label>Closed ones too <input type="checkbox" name="all" value="true" defaultChecked={conditions.all === "true"} /></label>
        <button>Show</button>
      </form>
      <Show of={found}>
        {(page) => (
          <>
            {page.memories.length === 0 && <p class="quiet">Nothing is remembered here.</p>}
            <ul class="rows">{page.memories.map((memory) => <Row key={memory.id} memory={memory} />)}</ul>
            {page.cursor !== null && (
              <p class="pages"><a href={addressOf(place.tenant, "memory", undefined, { ...conditions, cursor: page.cursor })}>Next</a></p>
            )}
          </>
        )}
      </Show>
    </>
  );
}

function Row({ memory }: { memory: Schemas["Memory"] }) {
  return (
    <li>
      <a href={addressOf(memory.tenant_id, "memory", memory.id)}>{memory.content}</a>
      <span>{memory.scope_id}</span>
      <span>{memory.valid_to_ms !== null && "closed"}</span>
      <time dateTime={new Date(memory.recorded_at_ms).toISOString()}>{time(memory.recorded_at_ms)}</time>
    </li>
  );
}
