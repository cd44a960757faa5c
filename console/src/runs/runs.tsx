import type { Retain, Schemas } from "retain-client";

import { AgentField, Choice, Conditions, Field, TimeField } from "../form.tsx";
import { Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { cost, counted, duration, time } from "../shown.ts";

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
  const found = useLoaded(load, [JSON.stringify(place.query)], cursor === undefined ? { everyMs: REFRESH_MS } : {});
  const waits = conditions.status === "waiting";
  return (
    <>
      <div class="head">
        <h1>Runs</h1>
        {cursor === undefined && <span class="live">live</span>}
        <a class="aside" href={addressOf(place.tenant, "runs", undefined, { status: waits ? undefined : "waiting" })}>
          {waits ? "All runs" : "What waits for somebody"}
        </a>
      </div>
      <Conditions place={place} action="Search">
        <Choice label="Status" name="status" value={conditions.status} of={STATUSES} none="any" />
        <AgentField retain={retain} value={conditions.agent_type} />
        <Field label="User" name="user_id" value={conditions.user_id} />
        <Field label="Text" name="text" value={conditions.text} />
        <TimeField label="From" name="since_ms" value={conditions.since_ms} />
        <TimeField label="Until" name="until_ms" value={conditions.until_ms} />
      </Conditions>
      <Show of={found}>
        {(page) => (
          <>
            {page.runs.length === 0 && <Nothing more={page.cursor !== null}>There are no such runs.</Nothing>}
            <ul class="rows runs">{page.runs.map((run) => <Row key={run.run_id} run={run} />)}</ul>
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
      <a href={addressOf(run.tenant_id, "runs", run.run_id)}><b>{run.agent_type}</b></a>
      <span class={`status ${run.status}`}>{run.status}</span>
      <span class="what">
        {run.parent_run_id !== null && <><a href={addressOf(run.tenant_id, "runs", run.parent_run_id)}>delegated</a>, </>}
        {run.user_id !== null && <>for <a href={addressOf(run.tenant_id, "people", run.user_id)}><bdi>{run.user_id}</bdi></a>, </>}
        {run.waiting_for !== null ? <b>waits for {asked(run.waiting_for)}</b> : run.instance_id}
      </span>
      <span class="number">
        {counted(run.input_tokens + run.output_tokens, "token")}
        {run.cost !== null && <>, {cost(run.cost)}</>}
      </span>
      <span class="number">{ended === null ? "" : duration(ended - run.created_at_ms)}</span>
      <time dateTime={new Date(run.created_at_ms).toISOString()}>{time(run.created_at_ms)}</time>
    </li>
  );
}

function asked(waited: NonNullable<Schemas["ListedRun"]["waiting_for"]>): string {
  if (waited.kind === "approval") return `an approval of ${waited.tool}`;
  return waited.kind === "delegate" ? `the agent ${waited.agent_type}` : "its model's server";
}
