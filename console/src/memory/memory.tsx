import { useState } from "preact/hooks";
import { type Retain, RetainError, type Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { AsOf, asOf } from "../asof.tsx";
import { useUnsaved } from "../form.tsx";
import { InvalidField, Nothing, Show, useActions, useChanges, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { text, time } from "../shown.ts";
import { thenOf, withEvents } from "./events.ts";
import { Fields } from "./fields.tsx";
import { foldOf, History } from "./history.tsx";
import { Near } from "./near.tsx";
import { Removal } from "./removal.tsx";
import { SameFact } from "./same-fact.tsx";
import { Source } from "./source.tsx";

/** One memory: what it says, where it comes from, and what became of it. */
export function MemoryView({ retain, place, id }: { retain: Retain; place: Place; id: string }) {
  const may = useMay();
  const [changes, changed] = useChanges();
  const [written, write] = useState<string | undefined>(undefined);
  const [failure, act] = useActions(changed);
  const found = useLoaded(() => withEvents(retain, id), [id], { changes });
  const at = asOf(place);
  /** Change what is shown, unless somebody else changed it meanwhile: what was written stays in its field. */
  const update = (fields: Record<string, unknown>): Promise<unknown> => {
    const based = found !== undefined && "value" in found ? { ifMatch: found.value.last_event_id } : {};
    return retain.memories.update(id, fields as Schemas["EditBody"], based).catch((error: unknown) => {
      if (error instanceof RetainError && error.code === "memory_changed") throw new InvalidField("Somebody changed this memory after it was shown. Look at it again before you change it.");
      throw error;
    });
  };
  /** Change fields. What was written and is not saved stays, unless the content is what changes. */
  const edit = (fields: Record<string, unknown>) => act(() => update(fields).then(() => "content" in fields && write(undefined)));
  return (
    <>
      <h1>Memory</h1>
      <AsOf retain={retain} place={place} />
      <Show of={found}>
        {(memory) => (
          <>
            {at === undefined ? <Content memory={memory} written={written} write={write} edit={may("update_memory") ? edit : undefined} /> : <Then memory={memory} atMs={at} />}
            {failure}
            <Facts memory={at === undefined ? memory : thenOf(memory, at)} />
            {memory.subject !== null && memory.predicate !== null && <SameFact retain={retain} memory={memory} atMs={at} />}
            <h2>History</h2>
            <History memory={memory} atMs={at} restore={may("update_memory") && at === undefined ? edit : undefined} />
            {may("recall_memories") && <Near retain={retain} memory={memory} atMs={at} />}
            {at === undefined && <Removal retain={retain} memory={memory} />}
          </>
        )}
      </Show>
    </>
  );
}

function Facts({ memory }: { memory: Schemas["MemoryWithEvents"] }) {
  const { tenant_id, utterance } = memory;
  return (
    <dl class="facts">
      <dt>Id</dt><dd><code>{memory.id}</code></dd>
      <dt>Belongs to</dt><dd>{memory.scope_id}</dd>
      <dt>Kind</dt><dd>{memory.kind}, confidence {memory.confidence}, importance {memory.importance}</dd>
      {memory.subject !== null && <><dt>Fact</dt><dd>{memory.subject}, {memory.predicate}, {memory.object}</dd></>}
      {Object.keys(memory.metadata).length > 0 && <><dt>Metadata</dt><dd><code>{JSON.stringify(memory.metadata)}</code></dd></>}
      <dt>Valid</dt><dd>from {time(memory.valid_from_ms)}{memory.valid_to_ms !== null && ` to ${time(memory.valid_to_ms)}`}</dd>
      {memory.expires_at_ms !== null && <><dt>Expires</dt><dd>{time(memory.expires_at_ms)}</dd></>}
      <dt>Source</dt><dd><Source tenant={tenant_id} source={memory.source} id={memory.id} /></dd>
      {utterance !== null && (
        <><dt>Said</dt><dd>by {utterance.speaker || "somebody"} in {utterance.conversation}, message {utterance.position}{utterance.at_ms !== null && `, ${time(utterance.at_ms)}`}</dd></>
      )}
      {memory.superseded_by !== null && (
        <><dt>Replaced by</dt><dd><a href={addressOf(tenant_id, "memory", memory.superseded_by)}>{memory.superseded_by}</a></dd></>
      )}
    </dl>
  );
}

/** What it said at an earlier time, by its events. */
function Then({ memory, atMs }: { memory: Schemas["MemoryWithEvents"]; atMs: number }) {
  const events = memory.events.filter((event) => event.at_ms <= atMs);
  if (events.length === 0) return <Nothing>It was not known then.</Nothing>;
  const { content, metadata, valid_to_ms } = foldOf(events);
  return (
    <>
      <p class="then" dir="auto">{text(content)}</p>
      <p class="quiet">
        as it was known then{typeof valid_to_ms === "number" && valid_to_ms <= atMs && ", closed"}
        {metadata !== undefined && Object.keys(metadata as object).length > 0 && <>, <code>{JSON.stringify(metadata)}</code></>}
      </p>
    </>
  );
}

/** What it says, which an operator may change. */
function Content({ memory, written, write, edit }: {
  memory: Schemas["MemoryWithEvents"];
  /** What somebody wrote instead of its content, and did not save yet. */
  written: string | undefined;
  write: (content: string) => void;
  edit: ((fields: Record<string, unknown>) => () => void) | undefined;
}) {
  const edited = written ?? memory.content;
  useUnsaved(edited !== memory.content);
  if (edit === undefined) return <p class="then" dir="auto">{memory.content}</p>;
  return (
    <>
      <label class="wide">Content <textarea dir="auto" rows={3} value={edited} onInput={(event) => write(event.currentTarget.value)} /></label>
      <p class="actions">
        <button class="primary" disabled={edited === memory.content} onClick={edit({ content: edited })}>Save</button>
        {memory.valid_to_ms === null
          ? <button onClick={edit({ valid_to_ms: Date.now() })}>Close: it is no longer so</button>
          : <button onClick={edit({ valid_to_ms: null })}>Open again</button>}
      </p>
      <Fields memory={memory} edit={edit} />
    </>
  );
}
