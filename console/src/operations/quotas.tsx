import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";

const NAMES = { memories: "Memories", runs_a_day: "Runs today (UTC)", tokens_a_day: "Tokens today (UTC)" } as const;

/** What the tenant may hold and spend, and how much of it is left. */
export function Quotas({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant } };
    const [quotas, tenant] = await Promise.all([
      retain.api.GET("/v1/tenants/{tenant}/quotas", { params }),
      retain.api.GET("/v1/tenants/{tenant}", { params }),
    ]);
    return { quotas: quotas.data!, perUser: tenant.data!.max_memories_per_user };
  }, []);
  return (
    <>
      <h2>Limits and quotas</h2>
      <Show of={found}>
        {({ quotas, perUser }) => (
          <ul class="rows">
            {(Object.keys(NAMES) as (keyof typeof NAMES)[]).map((name) => <Row key={name} name={NAMES[name]} of={quotas[name]} />)}
            <li><b>Memories of each user</b><span>{perUser === null ? "without a limit" : `at most ${perUser.toLocaleString()}`}</span><span /><span /></li>
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
