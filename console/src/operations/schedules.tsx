import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Confirmed } from "../form.tsx";
import { More, newest, Nothing, Show, useActions, useChanges, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { text, time } from "../shown.ts";

const REFRESH_MS = 10_000;

/** The schedules of the tenant, the newest first: paused, resumed, or deleted. */
export function Schedules({ retain }: { retain: Retain }) {
  const may = useMay();
  const [changes, changed] = useChanges();
  const [failure, act] = useActions(changed);
  const found = useLoaded(() => newest(retain.schedules.list()), [], { changes, everyMs: REFRESH_MS });
  return (
    <>
      <h2>Schedules</h2>
      {failure}
      <Show of={found}>
        {([schedules, more]) => (
          <>
            {schedules.length === 0 && <Nothing>Nothing is scheduled.</Nothing>}
            <ul class="rows">
              {schedules.map((one) => (
                <li key={one.schedule_id}>
                  <span><b>{one.agent_type}</b> <span class="quiet">{text(one.input)}</span></span>
                  <span>{whenOf(one)}{one.last_error !== null && <span class="failure"> {one.last_error}</span>}</span>
                  <span class="actions">
                    {one.state === "active" && may("change_schedule") && <button onClick={act(() => retain.schedules.pause(one.schedule_id))}>Pause</button>}
                    {one.state === "paused" && may("change_schedule") && <button onClick={act(() => retain.schedules.resume(one.schedule_id))}>Resume</button>}
                    {may("delete_schedule") && <Confirmed name="Delete" act={act(() => retain.schedules.delete(one.schedule_id))}><p>It begins no more runs. Those that it began stay.</p></Confirmed>}
                  </span>
                  <span>{one.last_run_id !== null && <a href={addressOf(retain.tenant, "runs", one.last_run_id)}>last run</a>}</span>
                </li>
              ))}
            </ul>
            <More of={more} />
          </>
        )}
      </Show>
    </>
  );
}

function whenOf(one: Schemas["Schedule"]): string {
  const planned = one.cron === null ? time(one.at_ms!) : `${one.cron} (${one.timezone})`;
  if (one.state === "active") return one.cron === null ? planned : `${planned}, next ${time(one.next_at_ms!)}`;
  return `${planned}, ${one.state}`;
}
