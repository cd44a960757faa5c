import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";

/** The databases of the deployment, and on which of them the tenant lives. */
export function Databases({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => {
    const [all, own] = await Promise.all([
      retain.api.GET("/admin/shards"),
      retain.api.GET("/admin/tenants/{tenant}/shard", { params: { path: { tenant: retain.tenant } } }),
    ]);
    return { shards: all.data!.shards, own: own.data! };
  }, []);
  return (
    <>
      <h2>Databases</h2>
      <Show of={found}>
        {({ shards, own }) => shards.length === 0 ? <p class="quiet">The deployment has one.</p> : (
          <>
            <ul class="rows">{shards.map((shard) => <Row key={shard.shard} shard={shard} own={own.shard} />)}</ul>
            {own.move !== null && <p class="cut">This tenant moves from {own.move.source} to {own.move.target}: {own.move.step.replaceAll("_", " ")}.</p>}
          </>
        )}
      </Show>
    </>
  );
}

function Row({ shard: { shard, tenants, moving, bytes, used }, own }: { shard: Schemas["Shard"]; own: string }) {
  return (
    <li>
      <span><b>{shard}</b> {shard === own && <span class="chip">this tenant</span>}</span>
      <span>{tenants.toLocaleString()} placed{moving > 0 && `, ${moving.toLocaleString()} on the move`}</span>
      <span>{bytes !== null && `${(bytes / 1_000_000).toLocaleString(undefined, { maximumFractionDigits: 1 })} MB`}</span>
      <span class="number">{used !== null && `${(used * 100).toFixed(1)} % of what it may hold`}</span>
    </li>
  );
}
