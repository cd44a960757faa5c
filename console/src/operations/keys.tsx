import { Pages, type Retain, type Schemas } from "retain-client";

import { More, newest, Nothing, Show, useLoaded } from "../loading.tsx";
import { time } from "../shown.ts";

/** The keys of the tenant's applications, the newest first. */
export function Keys({ retain }: { retain: Retain }) {
  const found = useLoaded(() => {
    const path = { tenant: retain.tenant };
    return newest(
      new Pages(async (cursor) => {
        const page = (await retain.api.GET("/v1/tenants/{tenant}/keys", { params: { path, query: cursor } })).data!;
        return [page.keys, page.cursor];
      }),
    );
  }, []);
  return (
    <>
      <h2>Keys</h2>
      <Show of={found}>
        {([keys, more]) => (
          <>
            {keys.length === 0 && <Nothing>No application has a key.</Nothing>}
            <ul class="rows">
              {keys.map((key) => (
                <li key={key.key_id}>
                  <span><b>{key.name}</b> {stateOf(key)}</span>
                  <span>{key.scopes.join(", ")}</span>
                  <span>{key.origins.join(", ")}</span>
                  <time>{key.last_used_at_ms === null ? "never used" : `last used ${time(key.last_used_at_ms)}`}</time>
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

function stateOf(key: Schemas["Key"]): string {
  if (key.revoked_at_ms !== null) return "revoked";
  return key.expires_at_ms !== null && key.expires_at_ms < Date.now() ? "expired" : "valid";
}
