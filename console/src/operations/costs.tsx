import type { Retain, Schemas } from "retain-client";

import { More, newest, Nothing, Show, useLoaded } from "../loading.tsx";
import { cost } from "../shown.ts";

/** What the tenant spent, by day, agent, purpose and model, the newest first. */
export function Costs({ retain }: { retain: Retain }) {
  const found = useLoaded(() => newest(retain.runs.costs()), []);
  return (
    <>
      <h2>Costs by day (UTC)</h2>
      <Show of={found}>
        {([costs, more]) => {
          const most = Math.max(1, ...costs.map(tokens));
          return (
            <>
              {costs.length === 0 && <Nothing>Nothing was spent.</Nothing>}
              <ul class="rows">
                {costs.map((one) => (
                  <li key={`${one.day} ${one.agent_type} ${one.purpose} ${one.model}`}>
                    <span>{one.day} <b>{one.agent_type || one.purpose}</b> <span class="quiet">{one.agent_type && one.purpose !== "run" ? `${one.purpose}, ` : ""}{one.model}</span></span>
                    <span>{tokens(one).toLocaleString()} tokens{one.cached_input_tokens > 0 && <span class="quiet">, {one.cached_input_tokens.toLocaleString()} from a cache</span>}</span>
                    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="model" width={(tokens(one) / most) * 100} y="0.5" height="3" />
                    </svg>
                    <span class="number">{cost(one.cost)}</span>
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
  return of.input_tokens + of.output_tokens + of.learning_input_tokens + of.learning_output_tokens;
}
