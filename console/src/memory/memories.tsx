import type { Retain, Schemas } from "retain-client";

import { AsOf, asOf } from "../asof.tsx";
import { AgentField, Choice, Conditions, Field, TimeField } from "../form.tsx";
import { More, Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { filterIn } from "../recall/recall.tsx";
import { cut, LISTED, time } from "../shown.ts";

const PAGE = 50;
export const KINDS = ["fact", "event", "instruction", "task"];

/** The memories of a tenant, a house, an agent or a user: page by page, or those that words find. */
export function MemoriesView({ retain, place }: { retain: Retain; place: Place }) {
  const { query } = place;
  const at = asOf(place);
  const found = useLoaded(() => memoriesOf(retain, place), [JSON.stringify(query)]);
  return (
    <>
      <h1>Memory</h1>
      <Conditions place={place} keep={["as_of_ms"]} action="Show">
        <Field label="Words" name="words" value={query.words} />
        <AgentField retain={retain} value={query.agent_type} />
        <Field label="House" name="house" value={query.house} />
        <Field label="User" name="user_id" value={query.user_id} />
        <Choice label="Kind" name="kind" value={query.kind} of={KINDS} none="any" />
        <TimeField label="Recorded from" name="from_ms" value={query.from_ms} />
        <TimeField label="Recorded until" name="to_ms" value={query.to_ms} />
        <Field label="Filter (JSON)" name="filter" value={query.filter} placeholder='{"order": "SO-4411"}' />
        <label class="check"><input type="checkbox" name="all" value="true" defaultChecked={query.all === "true"} /> Closed ones too</label>
      </Conditions>
      <AsOf retain={retain} place={place} />
      <Show of={found}>
        {({ memories, cursor }) => (
          <>
            {memories.length === 0 && <Nothing more={cursor !== null}>{at === undefined ? "Nothing is remembered here." : "Nothing of it was known then."}</Nothing>}
            <ul class="rows memories">{memories.map((memory) => <Row key={memory.id} memory={memory} at={query.as_of_ms} />)}</ul>
            {query.words && query.all && <p class="quiet">Words find what is valid: closed ones are in the list without them.</p>}
            {query.words && <More of={memories.length === PAGE} most={PAGE} />}
            {cursor !== null && <p class="pages"><a href={addressOf(place.tenant, "memory", undefined, { ...query, cursor })}>Next</a></p>}
          </>
        )}
      </Show>
    </>
  );
}

interface Page {
  memories: Schemas["Memory"][];
  cursor: string | null;
}

async function memoriesOf(retain: Retain, place: Place): Promise<Page> {
  const { words, agent_type, house, user_id, all, cursor } = place.query;
  const at = asOf(place);
  const owner = { ...(agent_type && { agent_type }), ...(house && { house }), ...(user_id && { user_id }) };
  const filter = conditionsIn(place.query);
  const then = at === undefined ? {} : { as_of_ms: at };
  if (words) {
    const recall = await retain.memories.recall({ query: words, top_k: PAGE, min_score: 0, filter, ...owner, ...then } as Parameters<typeof retain.memories.recall>[0]);
    return { memories: recall.memories, cursor: null };
  }
  const conditions = Object.keys(filter).length === 0 ? {} : { filter: JSON.stringify(filter) };
  const query = { ...owner, ...conditions, ...then, ...(all && { all: true }), ...(cursor && { cursor }), limit: PAGE };
  const params = { path: { tenant: retain.tenant }, query };
  return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data!;
}

/** Return the conditions of the form as a filter. Throws an InvalidField for JSON that is not an object. */
export function conditionsIn({ kind, from_ms, to_ms, filter }: Record<string, string>): Record<string, unknown> {
  const recorded = { ...(from_ms && { $gte: Number(from_ms) }), ...(to_ms && { $lt: Number(to_ms) }) };
  return {
    ...(filter && filterIn(filter)),
    ...(kind && { kind }),
    ...(Object.keys(recorded).length > 0 && { recorded_at_ms: recorded }),
  };
}

function Row({ memory, at }: { memory: Schemas["Memory"]; at: string | undefined }) {
  return (
    <li>
      <a class="content" href={addressOf(memory.tenant_id, "memory", memory.id, { as_of_ms: at })} dir="auto">{cut(memory.content, LISTED)}</a>
      <span class="what">{memory.scope_id}</span>
      <span class="number">{memory.kind}{memory.valid_to_ms !== null && ", closed"}</span>
      <time dateTime={new Date(memory.recorded_at_ms).toISOString()}>{time(memory.recorded_at_ms)}</time>
    </li>
  );
}
