import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Confirmed } from "../form.tsx";
import { More, newest, Nothing, Show, useActions, useChanges, useLoaded } from "../loading.tsx";
import { Difference } from "../memory/history.tsx";
import { addressOf, type Place } from "../place.ts";
import { text, time } from "../shown.ts";

interface Known {
  /** undefined: it was deleted. */
  agent: Schemas["ListedAgent"] | undefined;
  /** Of an agent of the repository: what it is now. */
  definition: unknown;
  versions: Schemas["AgentVersion"][];
  more: boolean;
}

/** One agent: its definition, and what each of its versions changed. The address names the version to be shown. */
export function AgentView({ retain, place, id }: { retain: Retain; place: Place; id: string }) {
  const may = useMay();
  const [changes, changed] = useChanges();
  const [failure, act] = useActions(changed);
  const found = useLoaded(() => known(retain, id), [id], { changes });
  return (
    <>
      <h1>{id}</h1>
      {failure}
      <Show of={found}>
        {({ agent, definition, versions, more }) => {
          const current = versions[0]?.version ?? 0;
          return (
            <>
              <p>{agent === undefined ? "It was deleted: it begins no more runs." : agent.description}</p>
              <p class="pages"><a href={addressOf(place.tenant, "runs", undefined, { agent_type: id })}>Runs</a></p>
              {agent?.source === "repository" && (
                <>
                  <h2>Definition</h2>
                  <p class="quiet">It is of the repository, so that its versions are those of the deployment.</p>
                  <pre class="definition">{text(definition)}</pre>
                </>
              )}
              {versions.length > 0 && <h2>Versions</h2>}
              <ol class="history versions">
                {versions.map((version, at) => (
                  <Version key={version.version} retain={retain} version={version} before={versions[at + 1]} opened={place.query.version === String(version.version)}>
                    {may("roll_back_agent") && at > 0 && !version.deleted && (
                      <Confirmed key={current} name={`Define as in version ${version.version}`} act={act(() => retain.agents.rollBack(id, version.version, { ifMatch: current }))}>
                        <p>It becomes version {current + 1}, with which runs begin from then. Open runs end as they began.</p>
                      </Confirmed>
                    )}
                  </Version>
                ))}
              </ol>
              <More of={more} />
            </>
          );
        }}
      </Show>
    </>
  );
}

/** Read what is known of an agent. The list says whether it has versions: it is asked first, so that nothing is refused. */
async function known(retain: Retain, id: string): Promise<Known> {
  const agent = await listed(retain, id);
  if (agent?.source === "repository") return { agent, definition: (await retain.agents.get(id)).definition, versions: [], more: false };
  const [versions, more] = await newest(retain.agents.versions(id));
  return { agent, definition: undefined, versions, more };
}

async function listed(retain: Retain, id: string): Promise<Schemas["ListedAgent"] | undefined> {
  for await (const one of retain.agents.list({ limit: 200 })) if (one.agent_type === id) return one;
  return undefined;
}

/** One version: who made it, and, once it is opened, what it changed of the one before. */
function Version({ retain, version, before, opened, children }: {
  retain: Retain;
  version: Schemas["AgentVersion"];
  before: Schemas["AgentVersion"] | undefined;
  opened: boolean;
  children: preact.ComponentChildren;
}) {
  const [open, setOpen] = useState(opened);
  return (
    <li>
      <details open={open} onToggle={(event) => event.target === event.currentTarget && setOpen(event.currentTarget.open)}>
        <summary>
          <b>Version {version.version}</b> <time class="quiet">{time(version.created_at_ms)}</time> <span class="quiet">by {version.created_by}</span>
          {version.restored_from !== null && <> as in version {version.restored_from}</>}
          {version.deleted && <b class="mark"> deleted</b>}
        </summary>
        {open && <Definition retain={retain} version={version} before={before} />}
        {children}
      </details>
    </li>
  );
}

function Definition({ retain, version, before }: { retain: Retain; version: Schemas["AgentVersion"]; before: Schemas["AgentVersion"] | undefined }) {
  const found = useLoaded(() => Promise.all([version, before].map((one) => definitionOf(retain, one))), [version.version, before?.version]);
  return (
    <Show of={found}>
      {([now, earlier]) => now === undefined ? <Nothing>It has no definition: the agent was deleted.</Nothing> : (
        <pre class="definition">{earlier === undefined ? now : <Difference before={earlier} after={now} />}</pre>
      )}
    </Show>
  );
}

/** Return the definition of a version as text, undefined for none. */
async function definitionOf(retain: Retain, version: Schemas["AgentVersion"] | undefined): Promise<string | undefined> {
  if (version === undefined || version.deleted) return undefined;
  return text((await retain.agents.version(version.agent_type, version.version)).definition);
}
