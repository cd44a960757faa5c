import { useEffect, useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { AsOf } from "../asof.tsx";
import { AgentField, Conditions, Field, TimeField } from "../form.tsx";
import { InvalidField, Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { AddCase } from "./add-case.tsx";
import { Found } from "./found.tsx";

const TOP_K = 10;
const BELOW = 5;
/** The names of the other settings begin with it in the address. */
const OTHER = "other_";
const NAMES = ["query", "agent_type", "house", "user_id", "valid_at_ms", "as_of_ms", "top_k", "min_score", "filter"] as const;

type Settings = Partial<Record<(typeof NAMES)[number], string | undefined>>;

/** Try a query: what is recalled, what each score is made of, and what was just below; or two settings next to each other. */
export function RecallView({ retain, place }: { retain: Retain; place: Place }) {
  const compared = place.query.compare === "true";
  const first = settingsIn(place.query, "");
  const other = compared ? { ...first, valid_at_ms: undefined, ...settingsIn(place.query, OTHER) } : undefined;
  const [shown, setShown] = useState<Record<string, Schemas["Recall"] | undefined>>({});
  const ranksOf = (name: string) => shown[name] && new Map(shown[name].memories.map((one, at) => [one.id, at + 1]));
  const column = (name: string, settings: Settings, against: string | undefined) => (
    <Column key={name} retain={retain} name={name} settings={settings} known={(recall) => setShown((before) => ({ ...before, [name]: recall }))}
      compared={against !== undefined} ranks={against === undefined ? undefined : ranksOf(against)} />
  );
  return (
    <>
      <div class="head">
        <h1>Recall</h1>
        <a class="aside" href={addressOf(place.tenant, "recall", undefined, { ...place.query, compare: compared ? undefined : "true" })}>
          {compared ? "One setting" : "Compare two settings"}
        </a>
      </div>
      <Conditions place={place} keep={["as_of_ms", "compare"]} action="Recall">
        <Fields retain={retain} settings={first} prefix="" />
        {other && <fieldset><legend>Compared with</legend><Fields retain={retain} settings={other} prefix={OTHER} /></fieldset>}
      </Conditions>
      <AsOf retain={retain} place={place} />
      {first.query === undefined ? <Nothing>Ask something, as an agent would.</Nothing> : (
        <div class="columns">
          {column("A", first, other && "B")}
          {other && column("B", other, "A")}
        </div>
      )}
    </>
  );
}

function Fields({ retain, settings, prefix }: { retain: Retain; settings: Settings; prefix: string }) {
  const named = (name: (typeof NAMES)[number]) => ({ name: `${prefix}${name}`, value: settings[name] });
  return (
    <>
      <label class="wide">{prefix === "" ? "Query" : "Other query"} <input name={`${prefix}query`} required defaultValue={settings.query ?? ""} /></label>
      <AgentField retain={retain} {...named("agent_type")} />
      <Field label="House" {...named("house")} />
      <Field label="User" {...named("user_id")} />
      <Field label="How many" {...named("top_k")} type="number" min="1" max="50" placeholder={String(TOP_K)} />
      <Field label="Least relevance" {...named("min_score")} type="number" min="0" max="1" step="any" placeholder="0" />
      <TimeField label="Valid at" {...named("valid_at_ms")} />
      {prefix !== "" && <TimeField label="As of" {...named("as_of_ms")} />}
      <Field label="Filter (JSON)" {...named("filter")} placeholder='{"kind": "fact"}' />
    </>
  );
}

function Column({ retain, name, settings, known, compared, ranks }: {
  retain: Retain;
  name: string;
  settings: Settings;
  known: (recall: Schemas["Recall"] | undefined) => void;
  compared: boolean;
  /** Of what the other setting recalls, undefined while that is not known. */
  ranks: Map<string, number> | undefined;
}) {
  const may = useMay();
  const key = JSON.stringify(settings);
  const found = useLoaded(async () => retain.memories.recall(bodyOf(settings)), [key]);
  // Not where it is loaded: an answer to earlier settings may arrive last.
  useEffect(() => known(found !== undefined && "value" in found ? found.value : undefined), [found]);
  const moved = (id: string, rank: number) => {
    const before = ranks?.get(id);
    if (ranks === undefined) return null;
    return before === undefined ? <b class="new">only here</b> : before === rank ? <span class="quiet">=</span> : <b>{before > rank ? `↑ from ${before}` : `↓ from ${before}`}</b>;
  };
  return (
    <section aria-label={compared ? `Setting ${name}` : "What is recalled"}>
      {compared && <h2>{name}: {settings.query}</h2>}
      <Show of={found}>
        {(recall) => (
          <>
            <Found recall={recall} minScore={Number(settings.min_score ?? 0)} note={({ id, left_out }) => left_out === undefined && moved(id, recall.memories.findIndex((one) => one.id === id) + 1)} />
            {may("put_dataset") && !compared && <AddCase retain={retain} settings={settings} recall={recall} />}
          </>
        )}
      </Show>
    </section>
  );
}

function settingsIn(query: Record<string, string>, prefix: string): Settings {
  return Object.fromEntries(NAMES.flatMap((name) => (query[`${prefix}${name}`] ? [[name, query[`${prefix}${name}`]]] : [])));
}

/** Return the body of a recall. Throws an InvalidField for a filter that is not JSON. */
export function bodyOf(settings: Settings): Partial<Schemas["RecallBody"]> & { query: string } {
  const { query = "", agent_type, house, user_id, valid_at_ms, as_of_ms, top_k, min_score, filter } = settings;
  return {
    query,
    top_k: Number(top_k ?? TOP_K),
    min_score: Number(min_score ?? 0),
    explain: true,
    runners_up: BELOW,
    ...(agent_type && { agent_type }),
    ...(house && { house }),
    ...(user_id && { user_id }),
    ...(filter && { filter: filterIn(filter) }),
    ...(valid_at_ms && { valid_at_ms: Number(valid_at_ms) }),
    ...(as_of_ms && { as_of_ms: Number(as_of_ms) }),
  };
}

/** Return the conditions that somebody wrote as JSON. Throws an InvalidField for what is not an object. */
export function filterIn(written: string): Record<string, unknown> {
  let found: unknown;
  try {
    found = JSON.parse(written);
  } catch {
    found = undefined;
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new InvalidField("A filter is a JSON object, such as {\"order\": \"SO-4411\"}.");
  return found as Record<string, unknown>;
}
