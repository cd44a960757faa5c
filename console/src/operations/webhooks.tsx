import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { More, newest, Nothing, Show, useActions, useChanges, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { time } from "../shown.ts";

/** Where the tenant's applications hear of runs, with what each was sent. */
export function Webhooks({ retain }: { retain: Retain }) {
  const found = useLoaded(() => retain.webhooks.list().all(), []);
  return (
    <>
      <h2>Webhooks</h2>
      <Show of={found}>
        {(webhooks) => (
          <>
            {webhooks.length === 0 && <Nothing>No application hears of runs.</Nothing>}
            {webhooks.map((webhook) => <Webhook key={webhook.webhook_id} retain={retain} webhook={webhook} />)}
          </>
        )}
      </Show>
    </>
  );
}

function Webhook({ retain, webhook }: { retain: Retain; webhook: Schemas["Webhook"] }) {
  const may = useMay();
  const [changes, changed] = useChanges();
  const [failure, act] = useActions(changed);
  const found = useLoaded(() => newest(retain.webhooks.deliveries(webhook.webhook_id)), [webhook.webhook_id], { changes });
  const replay = (messageId: string) => act(() => retain.webhooks.replay(webhook.webhook_id, messageId));
  return (
    <details>
      <summary>{webhook.url} <span class="quiet">{webhook.events.join(", ")}</span></summary>
      {failure}
      <Show of={found}>
        {([deliveries, more]) => (
          <>
            {deliveries.length === 0 && <Nothing>It was sent nothing yet.</Nothing>}
            <ul class="rows">
              {deliveries.map((one) => (
                <li key={one.message_id}>
                  <a href={addressOf(retain.tenant, "runs", one.run_id)}>{one.event}</a>
                  <span><span class={`status ${one.status === "delivered" ? "completed" : one.status}`}>{one.status}</span> {one.response_status ?? one.error}</span>
                  <span>{may("replay_delivery") && <button onClick={replay(one.message_id)}>Send again</button>}</span>
                  <time>{time(one.at_ms)}</time>
                </li>
              ))}
            </ul>
            <More of={more} />
          </>
        )}
      </Show>
    </details>
  );
}
