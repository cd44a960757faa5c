import type { Retain, Schemas } from "retain-client";

import { More, newest, Show, useLoaded } from "../loading.tsx";

/** What the tenant's runs spent, by day, agent and model, the newest first. */
export function Costs({ retain }: { retain: Retain }) {
  const found = useLoaded(() => newest(retain.runs.costs()), []);
  return (
    <>
      <h2>Costs by day</h2>
      <Show of={found}>
        {([costs, more]) => {
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
              <More of={more} />
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
