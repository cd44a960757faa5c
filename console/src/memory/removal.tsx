import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Confirmed } from "../form.tsx";
import { Failure, Show, useActions, useLoaded } from "../loading.tsx";
import { useErasing } from "../people/erasing.ts";
import { Receipt } from "../people/receipt.tsx";
import { addressOf } from "../place.ts";
import { counted } from "../shown.ts";

const LISTED = 20;

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
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { filter: JSON.stringify({ subject }), all: true, limit: LISTED } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params: params as never })).data!;
  }, [subject]);
  const [erased, erase] = useErasing(async () => {
    const params = { path: { tenant: retain.tenant } };
    const body = { subject, match: "subject" as const };
    return (await retain.api.POST("/v1/tenants/{tenant}/erase", { params, body: body as never })).data! as Schemas["Erasure"];
  });
  if (erased !== undefined) return "error" in erased ? <Failure error={erased.error} /> : <Receipt receipt={erased.receipt} />;
  return (
    <Confirmed name={`Erase everything about ${subject}`} act={erase}>
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
