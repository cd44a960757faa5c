import { render } from "preact";
import { useEffect, useState } from "preact/hooks";

import { clientOf } from "./api.ts";
import { EvaluationView } from "./evaluations/evaluation.tsx";
import { EvaluationsView } from "./evaluations/evaluations.tsx";
import { useLoaded } from "./loading.tsx";
import { MemoryView } from "./memory/memory.tsx";
import { MemoriesView } from "./memory/memories.tsx";
import { OperationsView } from "./operations/operations.tsx";
import { PeopleView } from "./people/people.tsx";
import { PersonView } from "./people/person.tsx";
import { addressOf, type Place, placeOf } from "./place.ts";
import { RecallView } from "./recall/recall.tsx";
import { RunView } from "./runs/run.tsx";
import { RunsView } from "./runs/runs.tsx";

const VIEWS = {
  runs: "Runs",
  people: "People",
  memory: "Memory",
  recall: "Recall",
  evaluations: "Evaluations",
  operations: "Operations",
};

function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash));
  useEffect(() => {
    const moved = () => setPlace(placeOf(location.hash));
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return place;
}

function View({ place }: { place: Place }) {
  const { view, id } = place;
  const retain = clientOf(place.tenant);
  if (view === "people") return id === undefined ? <PeopleView retain={retain} place={place} /> : <PersonView retain={retain} id={id} />;
  if (view === "memory") return id === undefined ? <MemoriesView retain={retain} place={place} /> : <MemoryView retain={retain} id={id} />;
  if (view === "recall") return <RecallView retain={retain} place={place} />;
  if (view === "evaluations")
    return id === undefined ? <EvaluationsView retain={retain} place={place} /> : <EvaluationView retain={retain} place={place} id={id} />;
  if (view === "operations") return <OperationsView retain={retain} />;
  return id === undefined ? <RunsView retain={retain} place={place} /> : <RunView retain={retain} runId={id} />;
}

function Tenants({ place }: { place: Place }) {
  const found = useLoaded(async () => (await clientOf(place.tenant).api.GET("/v1/tenants")).data?.tenants ?? [], []);
  const known = found !== undefined && "value" in found ? found.value.map((one) => one.tenant) : [];
  const names = known.includes(place.tenant) ? known : [place.tenant, ...known];
  return (
    <label>
      Tenant{" "}
      <select value={place.tenant} onChange={(event) => (location.hash = addressOf(event.currentTarget.value, place.view))}>
        {names.map((name) => <option key={name}>{name}</option>)}
      </select>
    </label>
  );
}

function Console() {
  const place = usePlace();
  return (
    <>
      <header>
        <strong>Retain</strong>
        <nav aria-label="Views">
          {Object.entries(VIEWS).map(([view, title]) => (
            <a key={view} href={addressOf(place.tenant, view)} aria-current={view === place.view ? "page" : undefined}>{title}</a>
          ))}
        </nav>
        <Tenants place={place} />
      </header>
      <main>
        <View key={`${place.tenant} ${place.view} ${place.id}`} place={place} />
      </main>
    </>
  );
}

render(<Console />, document.body);
