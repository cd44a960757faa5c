import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { Found } from "../recall/found.tsx";
import { cut } from "../shown.ts";
import { eventOf, type Step } from "./steps.ts";

const BELOW = 5;
/** A query takes 8 KiB. */
const MOST_CHARACTERS = 2_000;

interface Logged {
  records?: { id: string; score: number }[];
  left_out?: { id: string }[];
}

/** A recall of a run, for who may recall. */
export function Recalled({ retain, run, step }: { retain: Retain; run: Schemas["InspectedRun"]; step: Step }) {
  return useMay()("recall_memories") ? <Candidates retain={retain} run={run} step={step} /> : null;
}

/** A recall of a run: the same query asked again as of that moment, with what its model read of the candidates. */
function Candidates({ retain, run, step }: { retain: Retain; run: Schemas["InspectedRun"]; step: Step }) {
  const logged = run.input as Logged;
  const called = eventOf(step, "tool_called")?.data.arguments as { query?: string; top_k?: number; filter?: Record<string, unknown> } | undefined;
  const ofCall = (eventOf(step, "tool_answered")?.data.recalled ?? []) as [string, number][];
  const read = new Map(called === undefined ? (logged.records ?? []).map((one) => [one.id, one.score]) : ofCall);
  const cut = new Set(called === undefined ? (logged.left_out ?? []).map((one) => one.id) : []);
  const asked = { ...queryOf(run, called), as_of_ms: step.fromMs };
  const topK = called?.top_k ?? Math.max(1, read.size + cut.size);
  const body = { ...asked, top_k: topK, min_score: 0, explain: true, runners_up: BELOW, ...(called?.filter && { filter: called.filter }) };
  const why = addressOf(run.tenant_id, "recall", undefined, { ...asked, as_of_ms: String(step.fromMs), top_k: String(topK), filter: called?.filter && JSON.stringify(called.filter) });
  const found = useLoaded(() => retain.memories.recall(body), [step.seq, run.run_id]);
  return (
    <section class="recall" aria-label="Candidates">
      <h3>Candidates, and what each score is made of</h3>
      <Show of={found}>
        {(recall) => {
          const shown = new Set([...recall.memories, ...(recall.runners_up ?? [])].map((one) => one.id));
          const missing = [...read].filter(([id]) => !shown.has(id));
          return (
            <>
              <Found
                recall={recall}
                minScore={0}
                note={({ id }) => (read.has(id) ? <b class="read">read</b> : cut.has(id) ? <b class="cut">did not fit</b> : <span class="quiet">not read</span>)}
              />
              {missing.length > 0 && (
                <p class="quiet">
                  Also read, and not found again: {missing.map(([id]) => <a key={id} href={addressOf(run.tenant_id, "memory", id)}>{id}</a>)}
                </p>
              )}
              <p><a href={why}>Why these? Try it in the playground</a></p>
              <p class="quiet">Asked again as of that moment. The run also knew its conversation, so its own scores differ a little.</p>
            </>
          );
        }}
      </Show>
    </section>
  );
}

function queryOf(run: Schemas["InspectedRun"], called: { query?: string } | undefined): { query: string; agent_type: string; user_id?: string } {
  const { input } = run.input as { input?: unknown };
  const query = called?.query ?? (typeof input === "string" ? input : JSON.stringify(input ?? ""));
  return {
    query: cut(query, MOST_CHARACTERS, "") || "…",
    agent_type: run.agent_type,
    ...(run.user_id !== null && { user_id: run.user_id }),
  };
}
