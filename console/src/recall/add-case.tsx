import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { givenIn } from "../form.tsx";
import { DATASETS, datasetsOf } from "../evaluations/evaluations.tsx";
import { Failure, newest, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { cut } from "../shown.ts";

type Candidate = Schemas["RecalledMemory"];
type Dataset = Schemas["Dataset"];

/** What a memory is in a case, which runs in a tenant of its own. */
const COPIED = ["content", "kind", "metadata", "subject", "predicate", "object", "confidence", "importance"] as const;

interface Asked {
  query?: string | undefined;
  agent_type?: string | undefined;
  house?: string | undefined;
  top_k?: string | undefined;
}

/** Puts what is shown into a dataset of recall: the memories as they are, and which of them are to be found. */
export function AddCase({ retain, settings, recall }: { retain: Retain; settings: Asked; recall: Schemas["Recall"] }) {
  const [done, setDone] = useState<{ added: string } | { error: unknown } | undefined>(undefined);
  const datasets = useLoaded(() => newest(datasetsOf(retain), DATASETS), []);
  const [listed] = datasets !== undefined && "value" in datasets ? datasets.value : [[]];
  const known = listed.filter((one) => "recall" in one.target && one.target.recall);
  const candidates = [...recall.memories, ...(recall.runners_up ?? [])];
  const add = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const { dataset = "", case: id = "" } = givenIn(form);
    const relevant = new Set([...new FormData(form).getAll("relevant")].map(String));
    addCase(retain, dataset, caseOf(id, settings, candidates, relevant), settings).then(() => setDone({ added: dataset }), (error: unknown) => setDone({ error }));
  };
  if (candidates.length === 0) return null;
  return (
    <details class="add-case">
      <summary>Add this case to an evaluation</summary>
      <form onSubmit={add}>
        <fieldset>
          <legend>Which of them answer the query?</legend>
          {candidates.map((one, at) => (
            <label key={one.id} class="check"><input type="checkbox" name="relevant" value={one.id} defaultChecked={at === 0} /> <bdi>{cut(one.content, 120)}</bdi></label>
          ))}
        </fieldset>
        <div class="conditions">
          <label>Dataset <input name="dataset" required pattern="[a-z0-9_\-]{1,64}" list="datasets" defaultValue={known[0]?.name ?? "recall"} /></label>
          <datalist id="datasets">{known.map((one) => <option key={one.name} value={one.name} />)}</datalist>
          <label>Case <input name="case" required pattern="[A-Za-z0-9._\-]{1,64}" defaultValue={idOf(settings.query ?? "")} /></label>
          <button class="primary">Add</button>
        </div>
      </form>
      {done !== undefined && ("error" in done ? <Failure error={done.error} /> : (
        <p role="status">Added to <a href={addressOf(retain.tenant, "datasets", done.added)}>{done.added}</a>.</p>
      ))}
    </details>
  );
}

/** Return a name for a case: the words of its query. */
export function idOf(query: string): string {
  return query.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 40).replace(/-$/, "") || "case";
}

/** Return the case: the candidates as fixtures, those that are relevant as what has to be found. */
export function caseOf(id: string, { query = "", top_k }: Asked, candidates: readonly Candidate[], relevant: ReadonlySet<string>) {
  const name = (at: number) => `m${at + 1}`;
  const memories = candidates.map((one, at) => {
    const copied = COPIED.flatMap((field) => (one[field] === null ? [] : [[field, one[field]]]));
    return { id: name(at), ...Object.fromEntries(copied) };
  });
  const wanted = candidates.flatMap((one, at) => (relevant.has(one.id) ? [name(at)] : []));
  return { id, input: query, memories, expected: { memories: { relevant: wanted, k: Number(top_k ?? 5) } } };
}

/** Add a case to a dataset. What is put replaces the cases that are there, so they are asked for now, whatever was listed before. */
async function addCase(retain: Retain, name: string, added: ReturnType<typeof caseOf>, { agent_type, house, top_k }: Asked): Promise<void> {
  const params = { path: { tenant: retain.tenant, name } };
  const before = (await exists(retain, name)) ? (await retain.api.GET("/v1/tenants/{tenant}/evals/datasets/{name}", { params })).data : undefined;
  const target = { recall: { ...(agent_type && { agent_type }), ...(house && { house }), top_k: Number(top_k ?? 5) } };
  const cases = [...(before?.cases ?? []).filter((one) => one !== null && one.id !== added.id), added];
  const { description = "", thresholds = {} } = before ?? {};
  const body = { description, target: before?.target ?? target, thresholds, cases } as unknown as Dataset;
  await retain.api.PUT("/v1/tenants/{tenant}/evals/datasets/{name}", { params, body });
}

async function exists(retain: Retain, name: string): Promise<boolean> {
  for await (const one of datasetsOf(retain)) if (one.name === name) return true;
  return false;
}
