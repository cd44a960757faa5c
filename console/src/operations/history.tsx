import { useState } from "preact/hooks";
import type { Retain } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { text } from "../shown.ts";

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

function Verified({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant } };
    return (await retain.api.GET("/v1/tenants/{tenant}/history/verify", { params })).data!;
  }, []);
  return <Show of={found}>{(value) => <pre>{text(value)}</pre>}</Show>;
}
