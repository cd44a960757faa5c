import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Confirmed } from "../form.tsx";
import { Failure, Show, useActions, useLoaded } from "../loading.tsx";
import { Receipt } from "../people/receipt.tsx";
import { addressOf } from "../place.ts";
import { counted } from "../shown.ts";

const LISTED = 20;
/** A large erasure is continued for as long while somebody looks at it; then it continues with the daily work. */
const LONGEST_MS = 60_000;

/** What can be removed, after it was shown what that is: the memory, or everything about its subject for good. */
export function Removal({ retain, memory }: { retain: Retain; memory: Schemas["MemoryWithEvents"] }) {
  const may = useMay();
  const [failure, act] = useActions(() => (location.hash = addressOf(memory.tenant_id, "memory")));
  if (!may("delete_memory")) return null;
  return (
    <>
      <h2>Remove</h2>
      <Confirmed name="Delete" act={act(() => retain.memories.delete(memory.id))}>
        <p>Removed: this memory, its words and vectors in the indexes. No list and no recall has it any more.</p>
        <p>
          Kept: {counted(memory.events.length, "event")} of its history with the texts, until an erasure; and the runs that read it.
          {memory.superseded_by !== null && " What replaced it stays."}
        </p>
      </Confirmed>
      {memory.subject !== null && may("erase_memories") && <Subject retain={retain} subject={memory.subject} />}
      {failure}
    </>
  );
}

function Subject({ retain, subject }: { retain: Retain; subject: string }) {
  const [ended, setEnded] = useState<{ receipt: Schemas["Receipt"] } | { error: unknown } | undefined>(undefined);
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { filter: JSON.stringify({ subject }), all: true, limit: LISTED } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data!;
  }, [subject]);
  const erase = async () => {
    const params = { path: { tenant: retain.tenant } };
    const body = { subject, match: "subject" as const };
    for (const untilMs = Date.now() + LONGEST_MS; ; ) {
      const erasure = (await retain.api.POST("/v1/tenants/{tenant}/erase", { params, body: body as never })).data! as Schemas["Erasure"];
      if (erasure.retry_after_ms === null || Date.now() + erasure.retry_after_ms > untilMs) return erasure;
      await new Promise((resolve) => setTimeout(resolve, erasure.retry_after_ms!));
    }
  };
  if (ended !== undefined) return "error" in ended ? <Failure error={ended.error} /> : <Receipt receipt={ended.receipt} />;
  return (
    <Confirmed name={`Erase everything about ${subject}`} act={() => erase().then(({ receipt }) => setEnded({ receipt }), (error: unknown) => setEnded({ error }))}>
      <Show of={found}>
        {({ memories, cursor }) => (
          <>
            <p>Removed for good, with the texts in their history: {cursor === null ? counted(memories.length, "memory", "memories") : `more than ${LISTED} memories`} with this subject.</p>
            <ul class="doomed">{memories.map((one) => <li key={one.id}>{one.content}</li>)}</ul>
            <p>Kept: a receipt with their number, and what names the subject in other memories.</p>
          </>
        )}
      </Show>
    </Confirmed>
  );
}
