import type { Retain } from "retain-client";

import { Nothing, Show, useLoaded } from "../loading.tsx";
import { addressOf, type Place } from "../place.ts";
import { time } from "../shown.ts";

const PAGE = 50;

/** The users of a tenant, by their ids. */
export function PeopleView({ retain, place }: { retain: Retain; place: Place }) {
  const { cursor, as_of_ms } = place.query;
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { ...(cursor && { cursor }), limit: PAGE } };
    return (await retain.api.GET("/v1/tenants/{tenant}/users", { params })).data!;
  }, [cursor]);
  const open = (event: SubmitEvent) => {
    event.preventDefault();
    const id = String(new FormData(event.currentTarget as HTMLFormElement).get("id") ?? "").trim();
    if (id !== "") location.hash = addressOf(place.tenant, "people", id, { as_of_ms });
  };
  return (
    <>
      <h1>People</h1>
      <form class="conditions" role="search" onSubmit={open}>
        <label>User <input name="id" required /></label>
        <button class="primary">Open</button>
      </form>
      <Show of={found}>
        {(page) => (
          <>
            {page.users.length === 0 && <Nothing>No run has named a user yet.</Nothing>}
            <ul class="rows people">
              {page.users.map((user) => (
                <li key={user.id}>
                  <a href={addressOf(place.tenant, "people", user.id, { as_of_ms })}><bdi>{user.id}</bdi></a>
                  <bdi>{user.name}</bdi>
                  <span class="quiet">{[user.locale, user.timezone].filter(Boolean).join(", ")}</span>
                  <time>{user.last_run_at_ms !== null && `last run ${time(user.last_run_at_ms)}`}</time>
                </li>
              ))}
            </ul>
            {page.cursor !== null && (
              <p class="pages"><a href={addressOf(place.tenant, "people", undefined, { cursor: page.cursor, as_of_ms })}>Next</a></p>
            )}
          </>
        )}
      </Show>
    </>
  );
}
