import type { Retain } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { Costs } from "./costs.tsx";
import { GivenUp } from "./given-up.tsx";
import { History } from "./history.tsx";
import { Keys } from "./keys.tsx";
import { Quotas } from "./quotas.tsx";
import { Schedules } from "./schedules.tsx";
import { Webhooks } from "./webhooks.tsx";

const REFRESH_MS = 10_000;

/** What `/readyz` answers, also with 503. */
interface Readiness {
  status: string;
  version: string;
  stores?: Record<string, string>;
}

/** Whether the system is well, what it gave up, and who may reach it. */
export function OperationsView({ retain }: { retain: Retain }) {
  const ready = useLoaded(async () => (await fetch("/readyz")).json() as Promise<Readiness>, [], REFRESH_MS);
  return (
    <>
      <h1>Operations</h1>
      <h2>Ready</h2>
      <Show of={ready}>
        {({ status, version, stores }) => (
          <dl class="facts">
            <dt>Status</dt><dd>{status}, version {version}</dd>
            {Object.entries(stores ?? {}).map(([store, state]) => <><dt>{store}</dt><dd>{state}</dd></>)}
          </dl>
        )}
      </Show>
      <GivenUp retain={retain} />
      <Schedules retain={retain} />
      <Quotas retain={retain} />
      <Costs retain={retain} />
      <Keys retain={retain} />
      <Webhooks retain={retain} />
      <History retain={retain} />
    </>
  );
}
