import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";

const NAMES = { memories: "Memories", runs_a_day: "Runs today", tokens_a_day: "Tokens today" } as const;

/** What the tenant may hold and spend, and how much of it is left. */
export function Quotas({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant } };
    return (await retain.api.GET("/v1/tenants/{tenant}/quotas", { params })).data!;
  }, []);
  return (
    <>
      <h2>Quotas</h2>
      <Show of={found}>
        {(quotas) => (
          <ul class="rows">
            {(Object.keys(NAMES) as (keyof typeof NAMES)[]).map((name) => <Row key={name} name={NAMES[name]} of={quotas[name]} />)}
          </ul>
        )}
      </Show>
    </>
  );
}

function Row({ name, of }: { name: string; of: Schemas["TenantQuotas"]["memories"] }) {
  const { most, used } = of;
  return (
    <li>
      <b>{name}</b>
      <span>{used.toLocaleString()} {most === null ? "used, without a limit" : `of ${most.toLocaleString()}`}</span>
      {most === null ? <span /> : (
        <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
          <rect class="folded" width="100" y="0.5" height="3" />
          <rect class={used < most ? "model" : "failed"} width={most === 0 ? 100 : Math.min(100, (used / most) * 100)} y="0.5" height="3" />
        </svg>
      )}
      <span class="number">{most !== null && `${Math.max(0, most - used).toLocaleString()} left`}</span>
    </li>
  );
}
