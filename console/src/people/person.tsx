import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Failure, Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { Lanes, lanesOf } from "./lanes.tsx";

/** Facts that are drawn; a person with more has them in the list of memories. */
const MOST = 500;

interface Known {
  user: Schemas["ShownUser"];
  memories: Schemas["Memory"][];
}

/** What is known of one user: their facts over time, and how much else. */
export function PersonView({ retain, id }: { retain: Retain; id: string }) {
  const found = useLoaded(async (): Promise<Known> => {
    const memories: Schemas["Memory"][] = [];
    for await (const memory of retain.memories.list({ user_id: id, all: true, limit: 200 })) {
      memories.push(memory);
      if (memories.length === MOST) break;
    }
    return { user: await retain.users.get(id), memories };
  }, [id]);
  return (
    <Show of={found}>
      {({ user, memories }) => {
        const lanes = lanesOf(memories);
        return (
          <>
            <h1>{user.id}</h1>
            <dl class="facts">
              {user.name !== null && <><dt>Name</dt><dd>{user.name}</dd></>}
              {Object.entries(user.counts).map(([what, count]) => <><dt>{what.replaceAll("_", " ")}</dt><dd>{count}</dd></>)}
            </dl>
            <p class="pages">
              <a href={addressOf(retain.tenant, "memory", undefined, { user_id: id })}>Memories</a>
              <a href={addressOf(retain.tenant, "runs", undefined, { user_id: id })}>Runs</a>
            </p>
            <h2>Facts over time</h2>
            {lanes.length === 0 ? <p class="quiet">No facts are known.</p> : <Lanes lanes={lanes} nowMs={Date.now()} />}
            {memories.length === MOST && <p class="quiet">The oldest {MOST} memories are shown.</p>}
            <Forget retain={retain} id={id} />
          </>
        );
      }}
    </Show>
  );
}

/** Erases the user with everything that is kept of them, and shows the receipt. */
function Forget({ retain, id }: { retain: Retain; id: string }) {
  const [typed, setTyped] = useState("");
  const [ended, setEnded] = useState<{ receipt: Schemas["Receipt"] } | { error: unknown } | undefined>(undefined);
  const forget = () => retain.users.forget(id).then(({ receipt }) => setEnded({ receipt }), (error: unknown) => setEnded({ error }));
  return (
    <>
      <h2>Forget</h2>
      <p>Erases the user’s runs, messages and memories for good. Type <b>{id}</b> to confirm.</p>
      <p class="actions">
        <label>User <input value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></label>
        <button disabled={typed !== id} onClick={forget}>Forget</button>
      </p>
      {ended !== undefined && ("error" in ended ? <Failure error={ended.error} /> : <Receipt receipt={ended.receipt} />)}
    </>
  );
}

function Receipt({ receipt }: { receipt: Schemas["Receipt"] }) {
  return (
    <div role="status">
      <p>Receipt <code>{receipt.receipt_id}</code>: {receipt.state}</p>
      <dl class="facts">
        {Object.entries(receipt.counts).map(([what, count]) => <><dt>{what.replaceAll("_", " ")}</dt><dd>{count}</dd></>)}
      </dl>
    </div>
  );
}
