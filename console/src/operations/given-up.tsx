import { Pages, type Retain } from "retain-client";

import { useMay } from "../access.tsx";
import { More, newest, Nothing, Show, useActions, useChanges, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { time } from "../shown.ts";

/** What was given up in this tenant and is still parked, to be done again or dismissed. */
export function GivenUp({ retain }: { retain: Retain }) {
  const may = useMay();
  const [changes, changed] = useChanges();
  const [failure, act] = useActions(changed);
  const found = useLoaded(() => {
    const wanted = { state: "parked" as const, tenant: retain.tenant };
    return newest(
      new Pages(async (cursor) => {
        const page = (await retain.api.GET("/admin/errors", { params: { query: { ...wanted, ...cursor } } })).data!;
        return [page.errors, page.cursor];
      }),
    );
  }, [], { changes });
  const settle = (error_id: string, how: "/admin/errors/{error_id}/replay" | "/admin/errors/{error_id}/dismiss") =>
    act(() => retain.api.POST(how, { params: { path: { error_id } } }));
  return (
    <>
      <h2>Given up</h2>
      {failure}
      <Show of={found}>
        {([errors, more]) => (
          <>
            {errors.length === 0 && <Nothing>Nothing was given up.</Nothing>}
            <ul class="rows">
              {errors.map((one) => (
                <li key={one.error_id}>
                  <span><b>{one.code}</b> {one.stage}, {one.attempts} attempts</span>
                  <span>{one.run_id !== null && <a href={addressOf(retain.tenant, "runs", one.run_id)}>{one.agent_type}</a>}</span>
                  <span class="actions">
                    {may("replay_error") && <button onClick={settle(one.error_id, "/admin/errors/{error_id}/replay")}>Replay</button>}
                    {may("dismiss_error") && <button onClick={settle(one.error_id, "/admin/errors/{error_id}/dismiss")}>Dismiss</button>}
                  </span>
                  <time>{time(one.last_at_ms)}</time>
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
