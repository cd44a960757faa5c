import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { time } from "../shown.ts";

/** The world history of the tenant, and whether its chain is whole. */
export function History({ retain }: { retain: Retain }) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <h2>World history</h2>
      {asked ? <Verified retain={retain} /> : <p class="actions"><button onClick={() => setAsked(true)}>Verify</button></p>}
    </>
  );
}

type Verdict = Schemas["ChainVerdict"];

function Verified({ retain }: { retain: Retain }) {
  const found = useLoaded(async (): Promise<Verdict> => {
    const path = { tenant: retain.tenant };
    const verify = async (cursor: string | null) =>
      (await retain.api.GET("/v1/tenants/{tenant}/history/verify", { params: { path, query: cursor === null ? {} : { cursor } } })).data!;
    let verdict = await verify(null);
    while (verdict.cursor !== null && verdict.problem === null) verdict = await verify(verdict.cursor);
    return verdict;
  }, []);
  return (
    <Show of={found}>
      {({ entries, problem, broken_at, head }) => (
        <dl class="facts">
          <dt>Chain</dt>
          <dd>{problem === null ? <span class="status completed">whole</span> : <span class="failure">{problem}, at entry {broken_at}</span>}</dd>
          <dt>Entries</dt><dd>{entries.toLocaleString()}</dd>
          <dt>Head</dt><dd><code>{JSON.stringify(head)}</code></dd>
          <dt>Verified</dt><dd>{time(Date.now())}</dd>
        </dl>
      )}
    </Show>
  );
}
