import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";

/** Days of one agent and model that are shown. */
const MOST = 100;

/** What the tenant's runs spent, by day, agent and model, the newest first. */
export function Costs({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => {
    const costs: Schemas["DayCost"][] = [];
    for await (const one of retain.runs.costs()) {
      costs.push(one);
      if (costs.length === MOST) break;
    }
    return costs;
  }, []);
  return (
    <>
      <h2>Costs by day</h2>
      <Show of={found}>
        {(costs) => {
          const most = Math.max(1, ...costs.map(tokens));
          return (
            <>
              {costs.length === 0 && <p class="quiet">Nothing was spent.</p>}
              <ul class="rows">
                {costs.map((one) => (
                  <li key={`${one.day} ${one.agent_type} ${one.model}`}>
                    <span>{one.day} <b>{one.agent_type}</b> <span class="quiet">{one.model}</span></span>
                    <span>{tokens(one)} tokens</span>
                    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="model" width={(tokens(one) / most) * 100} y="0.5" height="3" />
                    </svg>
                    <span class="number">{one.cost === null ? "no price" : `${one.cost.value.toFixed(4)} ${one.cost.currency}`}</span>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Show>
    </>
  );
}

function tokens(of: Schemas["DayCost"]): number {
  return of.input_tokens + of.output_tokens;
}
