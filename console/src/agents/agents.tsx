import type { Retain } from "retain-client";

import { More, newest, Show, useLoaded } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { cut, LISTED } from "../shown.ts";

const AGENTS = 1_000;

/** The agents of the tenant, each with its version: those of the repository have none. */
export function Agents({ retain }: { retain: Retain }) {
  const found = useLoaded(() => newest(retain.agents.list({ limit: 200 }), AGENTS), []);
  return (
    <>
      <h2>Agents</h2>
      <Show of={found}>
        {([agents, more]) => (
          <>
            <ul class="rows">
              {agents.map((one) => (
                <li key={one.agent_type}>
                  <a href={addressOf(retain.tenant, "agents", one.agent_type)}><b>{one.agent_type}</b></a>
                  <span>{cut(one.description, LISTED)}</span>
                  <span class="quiet">{one.house !== null && `house ${one.house}`}</span>
                  <span class="number">{one.version === null ? "of the repository" : `version ${one.version}`}</span>
                </li>
              ))}
            </ul>
            <More of={more} most={AGENTS} />
          </>
        )}
      </Show>
    </>
  );
}
