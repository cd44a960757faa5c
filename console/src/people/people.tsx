import type { Retain } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { time } from "../shown.ts";

const PAGE = 50;

/** The users of a tenant, by their ids. */
export function PeopleView({ retain, place }: { retain: Retain; place: Place }) {
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { ...place.query, limit: PAGE } };
    return (await retain.api.GET("/v1/tenants/{tenant}/users", { params })).data!;
  }, [JSON.stringify(place.query)]);
  return (
    <>
      <h1>People</h1>
      <Show of={found}>
        {(page) => (
          <>
            {page.users.length === 0 && <p class="quiet">No run has named a user yet.</p>}
            <ul class="rows">
              {page.users.map((user) => (
                <li key={user.id}>
                  <a href={addressOf(place.tenant, "people", user.id)}>{user.id}</a>
                  <span>{user.name}</span>
                  <span class="quiet">{[user.locale, user.timezone].filter(Boolean).join(", ")}</span>
                  <time>{user.last_run_at_ms !== null && `last run ${time(user.last_run_at_ms)}`}</time>
                </li>
              ))}
            </ul>
            {page.cursor !== null && (
              <p class="pages"><a href={addressOf(place.tenant, "people", undefined, { cursor: page.cursor })}>Next</a></p>
            )}
          </>
        )}
      </Show>
    </>
  );
}
