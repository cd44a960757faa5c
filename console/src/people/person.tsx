import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { AsOf, asOf } from "../asof.tsx";
import { Failure, Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { counted, words } from "../shown.ts";
import { useErasing } from "./erasing.ts";
import { Lanes, lanesOf } from "./lanes.tsx";
import { Receipt } from "./receipt.tsx";

/** Facts that are drawn; a person with more has them in the list of memories. */
const MOST = 500;

interface Known {
  user: Schemas["ShownUser"];
  memories: Schemas["Memory"][];
}

/** What is known of one user, or was at a time: their facts over time, and how much else. */
export function PersonView({ retain, place, id }: { retain: Retain; place: Place; id: string }) {
  const may = useMay();
  const at = asOf(place);
  const found = useLoaded(async (): Promise<Known> => {
    const memories: Schemas["Memory"][] = [];
    const then = at === undefined ? {} : { as_of_ms: at };
    for await (const memory of retain.memories.list({ user_id: id, all: true, limit: 200, ...then })) {
      memories.push(memory);
      if (memories.length === MOST) break;
    }
    return { user: await retain.users.get(id), memories };
  }, [id, at]);
  return (
    <>
      <h1 dir="auto">{id}</h1>
      <AsOf retain={retain} place={place} />
      <Show of={found}>
        {({ user, memories }) => {
          const lanes = lanesOf(memories);
          return (
            <>
              <dl class="facts">
                {user.name !== null && <><dt>Name</dt><dd>{user.name}</dd></>}
                {user.timezone !== null && <><dt>Time zone</dt><dd>{user.timezone}</dd></>}
                {Object.entries(user.counts).map(([what, count]) => <><dt>{words(what)}</dt><dd>{count.toLocaleString()}</dd></>)}
              </dl>
              <p class="pages">
                <a href={addressOf(retain.tenant, "memory", undefined, { user_id: id, as_of_ms: place.query.as_of_ms })}>Memories</a>
                <a href={addressOf(retain.tenant, "runs", undefined, { user_id: id })}>Runs</a>
              </p>
              <h2>Facts over time</h2>
              {lanes.length === 0 ? <Nothing>{at === undefined ? "No facts are known." : "No facts were known then."}</Nothing> : <Lanes lanes={lanes} nowMs={at ?? Date.now()} />}
              {memories.length === MOST && <p class="quiet">The oldest {MOST} memories are shown.</p>}
              {may("delete_user") && <Forget retain={retain} user={user} />}
            </>
          );
        }}
      </Show>
    </>
  );
}

/** Erases the user with everything that is kept of them, after it was shown what that is, and shows the receipt. */
function Forget({ retain, user }: { retain: Retain; user: Schemas["ShownUser"] }) {
  const { id, counts } = user;
  const [typed, setTyped] = useState("");
  const [erased, forget] = useErasing(() => retain.users.forget(id, { timeoutS: 0 }));
  return (
    <>
      <h2>Forget</h2>
      <p>
        Removed for good: {counted(counts.memories, "memory", "memories")} with their history, {counted(counts.conversations, "conversation")} with
        the messages, {counted(counts.runs, "run")} with the events, {counted(counts.items, "item")}, and the profile.
        Kept: a receipt with the numbers, and for 30 days the id, so that nothing late brings anything back.
      </p>
      <p class="actions">
        <label>Type <b>{id}</b> to confirm <input aria-label="User" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} /></label>
        <button class="danger" disabled={typed !== id || erased !== undefined && "receipt" in erased} onClick={forget}>Forget</button>
      </p>
      {erased !== undefined && ("error" in erased ? <Failure error={erased.error} /> : <Receipt receipt={erased.receipt} />)}
    </>
  );
}
