import { render } from "preact";
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import type { Retain } from "retain-client";

import { Allowed } from "./access.tsx";
import { AgentView } from "./agents/agent.tsx";
import { clientOf } from "./api.ts";
import { DatasetView } from "./evaluations/dataset.tsx";
import { EvaluationView } from "./evaluations/evaluation.tsx";
import { EvaluationsView } from "./evaluations/evaluations.tsx";
import { Failure, useLoaded } from "./loading.tsx";
import { MemoryView } from "./memory/memory.tsx";
import { MemoriesView } from "./memory/memories.tsx";
import { OperationsView } from "./operations/operations.tsx";
import { PeopleView } from "./people/people.tsx";
import { PersonView } from "./people/person.tsx";
import { addressOf, type Place, placeOf } from "./place.ts";
import { RecallView } from "./recall/recall.tsx";
import { RunView } from "./runs/run.tsx";
import { RunsView } from "./runs/runs.tsx";
import { ZONE } from "./shown.ts";
import { useTitle } from "./title.ts";

const VIEWS = {
  runs: "Runs",
  people: "People",
  memory: "Memory",
  recall: "Recall",
  evaluations: "Evaluations",
  operations: "Operations",
};
const TITLES = { ...VIEWS, datasets: "Evaluations", agents: "Agents" };
/** Views that are reached from another one, which is marked as the present one. */
const WITHIN: Record<string, string> = { datasets: "evaluations", agents: "operations" };
/** Views between which the time stays of which things are shown. */
const TIMED = new Set(["people", "memory", "recall"]);

function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  // Before anything is drawn: who goes on at once would stay where they were.
  useLayoutEffect(() => {
    const moved = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

function View({ retain, place }: { retain: Retain; place: Place }) {
  const { view, id } = place;
  const at = { retain, place };
  if (view === "people") return id === undefined ? <PeopleView {...at} /> : <PersonView {...at} id={id} />;
  if (view === "memory") return id === undefined ? <MemoriesView {...at} /> : <MemoryView {...at} id={id} />;
  if (view === "recall") return <RecallView {...at} />;
  if (view === "datasets" && id !== undefined) return <DatasetView {...at} name={id} />;
  if (view === "evaluations" || view === "datasets") return id === undefined ? <EvaluationsView {...at} /> : <EvaluationView {...at} id={id} />;
  if (view === "agents" && id !== undefined) return <AgentView {...at} id={id} />;
  if (view === "operations" || view === "agents") return <OperationsView {...at} />;
  return id === undefined ? <RunsView {...at} /> : <RunView {...at} runId={id} />;
}

/** Tenants that are listed; a deployment with more has a field for their names, which suggests the first. */
const LISTED_TENANTS = 200;

function Tenants({ retain, place }: { retain: Retain; place: Place }) {
  const found = useLoaded(async () => (await retain.api.GET("/v1/tenants", { params: { query: { limit: LISTED_TENANTS } } })).data!, []);
  const page = found !== undefined && "value" in found ? found.value : undefined;
  const known = (page?.tenants ?? []).map((one) => one.tenant);
  const names = known.includes(place.tenant) ? known : [place.tenant, ...known];
  const goTo = (event: { currentTarget: { value: string } }) => {
    const name = event.currentTarget.value.trim();
    if (name !== "") location.hash = addressOf(name, place.view);
  };
  return (
    <label class="tenant">
      Tenant{" "}
      {page?.cursor == null ? (
        <select value={place.tenant} onChange={goTo}>{names.map((name) => <option key={name}>{name}</option>)}</select>
      ) : (
        <>
          <input key={place.tenant} list="tenants" autocomplete="off" defaultValue={place.tenant} onChange={goTo} />
          <datalist id="tenants">{names.map((name) => <option key={name} value={name} />)}</datalist>
        </>
      )}
    </label>
  );
}

function Console() {
  const place = usePlace();
  const { tenant } = place;
  useTitle(place, TITLES);
  const retain = useMemo(() => clientOf(tenant), [tenant]);
  const own = useLoaded(async () => (await retain.api.GET("/v1/tenants/{tenant}/access", { params: { path: { tenant } } })).data!, [tenant]);
  const access = own !== undefined && "value" in own ? own.value : undefined;
  const allowed = useMemo(() => access && new Set(access.operations), [access]);
  const here = WITHIN[place.view] ?? place.view;
  const at = { as_of_ms: place.query.as_of_ms };
  return (
    <Allowed.Provider value={allowed}>
      <header>
        <a class="skip" href="#content" onClick={(event) => (event.preventDefault(), document.querySelector("main")?.focus())}>To the content</a>
        <a class="brand" href={addressOf(tenant, "runs")}>Retain</a>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([view, title]) => (
            <a key={view} href={addressOf(tenant, view, undefined, TIMED.has(view) ? at : {})} aria-current={view === here ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <Tenants retain={retain} place={place} />
        <span class="zone" title="Times are shown in this zone">{ZONE}</span>
        {access && <span class="who" title={access.name}>{access.role}</span>}
      </header>
      <main id="content" tabIndex={-1}>
        {own !== undefined && "error" in own ? <Failure error={own.error} /> : <View key={`${tenant} ${place.view} ${place.id}`} retain={retain} place={place} />}
      </main>
    </Allowed.Provider>
  );
}

render(<Console />, document.body);
