import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Failure, Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { time } from "../shown.ts";
import { History } from "./history.tsx";
import { Near } from "./near.tsx";

/** One memory: what it says, where it comes from, and what became of it. */
export function MemoryView({ retain, id }: { retain: Retain; id: string }) {
  const [changes, setChanges] = useState(0);
  const found = useLoaded(() => retain.memories.get(id), [id, changes]);
  return (
    <Show of={found}>
      {(memory) => (
        <>
          <h1>Memory</h1>
          <Content retain={retain} memory={memory} changed={() => setChanges(changes + 1)} />
          <dl class="facts">
            <dt>Id</dt><dd><code>{memory.id}</code></dd>
            <dt>Belongs to</dt><dd>{memory.scope_id}</dd>
            <dt>Kind</dt><dd>{memory.kind}</dd>
            {memory.subject !== null && <><dt>Fact</dt><dd>{memory.subject}, {memory.predicate}, {memory.object}</dd></>}
            <dt>Valid</dt><dd>from {time(memory.valid_from_ms)}{memory.valid_to_ms !== null && ` to ${time(memory.valid_to_ms)}`}</dd>
            <dt>Source</dt><dd><Source memory={memory} /></dd>
            {memory.superseded_by !== null && (
              <><dt>Replaced by</dt><dd><a href={addressOf(memory.tenant_id, "memory", memory.superseded_by)}>{memory.superseded_by}</a></dd></>
            )}
          </dl>
          <Near retain={retain} memory={memory} />
          <h2>History</h2>
          <History events={memory.events} />
        </>
      )}
    </Show>
  );
}

function Source({ memory }: { memory: Schemas["MemoryWithEvents"] }) {
  const run = memory.source.run_id;
  if (typeof run === "string") return <a href={addressOf(memory.tenant_id, "runs", run)}>the run {run}</a>;
  return <code>{JSON.stringify(memory.source)}</code>;
}

/** What it says, which an operator may change or delete. */
function Content({ retain, memory, changed }: { retain: Retain; memory: Schemas["MemoryWithEvents"]; changed: () => void }) {
  const [error, setError] = useState<unknown>(undefined);
  const [edited, setEdited] = useState(memory.content);
  const act = (action: () => Promise<unknown>, then: () => void) => () => action().then(then, setError);
  const gone = () => (location.hash = addressOf(memory.tenant_id, "memory"));
  const remove = () => confirm("Delete this memory? It is no longer found, and its history stays.") && act(() => retain.memories.delete(memory.id), gone)();
  return (
    <>
      <label class="wide">Content <textarea rows={3} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} /></label>
      <p class="actions">
        <button disabled={edited === memory.content} onClick={act(() => retain.memories.update(memory.id, { content: edited }), changed)}>Save</button>
        <button onClick={remove}>Delete</button>
      </p>
      {error !== undefined && <Failure error={error} />}
    </>
  );
}
