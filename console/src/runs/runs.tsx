import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { duration, time } from "../shown.ts";

const STATUSES = ["open", "queued", "running", "waiting", "completed", "failed", "cancelled"];
const REFRESH_MS = 3_000;
const PAGE = 50;

/** The runs of a tenant, newest first, with what they wait for. */
export function RunsView({ retain, place }: { retain: Retain; place: Place }) {
  const { cursor, ...conditions } = place.query;
  const load = async () => {
    const params = { path: { tenant: retain.tenant }, query: { ...place.query, limit: PAGE } };
    return (await retain.api.GET("/v1/agents/{tenant}/runs", { params })).data!;
  };
  const found = useLoaded(load, [JSON.stringify(place.query)], cursor === undefined ? REFRESH_MS : undefined);
  return (
    <>
      <h1>Runs</h1>
      <Conditions place={place} conditions={conditions} />
      <Show of={found}>
        {(page) => (
          <>
            {page.runs.length === 0 && <p class="quiet">There are no such runs.</p>}
            <ul class="rows">{page.runs.map((run) => <Row key={run.run_id} run={run} />)}</ul>
            <p class="pages">
              {cursor !== undefined && <a href={addressOf(place.tenant, "runs", undefined, conditions)}>Newest</a>}
              {page.cursor !== null && (
                <a href={addressOf(place.tenant, "runs", undefined, { ...conditions, cursor: page.cursor })}>Older</a>
              )}
            </p>
          </>
        )}
      </Show>
    </>
  );
}

function Row({ run }: { run: Schemas["ListedRun"] }) {
  const ended = run.completed_at_ms;
  return (
    <li>
      <a href={addressOf(run.tenant_id, "runs", run.run_id)}>
        <b>{run.agent_type}</b> <span class={`status ${run.status}`}>{run.status}</span>
      </a>
      <span>{run.instance_id}{run.user_id !== null && `, for ${run.user_id}`}</span>
      <span>{run.waiting_for !== null && `waits for ${asked(run.waiting_for)}`}</span>
      <span class="number">{run.input_tokens + run.output_tokens} tokens</span>
      <span class="number">{ended === null ? "" : duration(ended - run.created_at_ms)}</span>
      <time dateTime={new Date(run.created_at_ms).toISOString()}>{time(run.created_at_ms)}</time>
    </li>
  );
}

function asked(waited: NonNullable<Schemas["ListedRun"]["waiting_for"]>): string {
  if (waited.kind === "approval") return `an approval of ${waited.tool}`;
  return waited.kind === "delegate" ? `the agent ${waited.agent_type}` : "its model's server";
}

function Conditions({ place, conditions }: { place: Place; conditions: Record<string, string> }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const query = Object.fromEntries([...given].map(([name, value]) => [name, String(value).trim()]));
    location.hash = addressOf(place.tenant, "runs", undefined, query);
  };
  return (
    <form key={JSON.stringify(place.query)} class="conditions" role="search" onSubmit={submit}>
      <label>Status <select name="status">
        <option value="">any</option>
        {STATUSES.map((status) => <option key={status} selected={status === conditions.status}>{status}</option>)}
      </select></label>
      <label>Agent <input name="agent_type" defaultValue={conditions.agent_type ?? ""} /></label>
      <label>User <input name="user_id" defaultValue={conditions.user_id ?? ""} /></label>
      <label>Text <input name="text" defaultValue={conditions.text ?? ""} /></label>
      <button>Search</button>
    </form>
  );
}
