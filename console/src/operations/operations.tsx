import { type Retain, RetainError } from "retain-client";

import { type Operation, useMay } from "../access.tsx";
import { Agents } from "../agents/agents.tsx";
import { asked } from "../api.ts";
import { Show, useLoaded } from "../loading.tsx";
import type { Place } from "../place.ts";
import { Costs } from "./costs.tsx";
import { Databases } from "./databases.tsx";
import { Debts } from "./debts.tsx";
import { GivenUp } from "./given-up.tsx";
import { History } from "./history.tsx";
import { Keys } from "./keys.tsx";
import { Migration } from "./migration.tsx";
import { Quotas } from "./quotas.tsx";
import { Receipts } from "./receipts.tsx";
import { Schedules } from "./schedules.tsx";
import { Webhooks } from "./webhooks.tsx";

const REFRESH_MS = 10_000;

/** What `/readyz` answers, also with 503. */
interface Readiness {
  status: string;
  version: string;
  stores?: Record<string, string>;
}

/** The parts, each with the operation without which nothing of it can be seen. */
const PARTS: [Operation, (props: { retain: Retain }) => preact.JSX.Element][] = [
  ["list_errors", GivenUp],
  ["list_debts", Debts],
  ["list_schedules", Schedules],
  ["get_quotas", Quotas],
  ["list_costs", Costs],
  ["list_agent_definitions", Agents],
  ["list_keys", Keys],
  ["list_webhooks", Webhooks],
  ["list_erasure_receipts", Receipts],
  ["verify_history", History],
  ["get_key_migration", Migration],
  ["list_shards", Databases],
];

/** Ask whether the deployment is ready. Throws a RetainError for an answer that says something else. */
async function readiness(): Promise<Readiness> {
  const answer = await asked("/readyz");
  const found = (await answer.json()) as Readiness | { code: string; detail: string };
  if ("version" in found) return found;
  throw new RetainError(found.detail, { code: found.code, status: answer.status });
}

/** Whether the system is well, what it gave up or still owes, what is left of its limits, and who may reach it. */
export function OperationsView({ retain }: { retain: Retain; place: Place }) {
  const may = useMay();
  const ready = useLoaded(readiness, [], { everyMs: REFRESH_MS });
  return (
    <>
      <h1>Operations</h1>
      <section class="part">
        <h2>Ready</h2>
        <Show of={ready}>
          {({ status, version, stores }) => (
            <p>
              <span class={`status ${status === "ready" ? "completed" : "failed"}`}>{status}, version {version}</span>{" "}
              {Object.entries(stores ?? {}).map(([store, state]) => <span key={store} class={`chip ${state === "ok" ? "" : "failure"}`}>{store}: {state}</span>)}
            </p>
          )}
        </Show>
      </section>
      {PARTS.map(([operation, Part]) => may(operation) && <section key={operation} class="part"><Part retain={retain} /></section>)}
    </>
  );
}
