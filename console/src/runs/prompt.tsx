import { useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { Show, unless, useLoaded } from "../loading.tsx";
import { text } from "../shown.ts";
import { eventOf, type Step, stepsOf } from "./steps.ts";

/** What of its memory a run's model read first, as its row keeps it: references. */
interface Read {
  input?: unknown;
  records?: { id: string; shortened?: true }[];
  profile?: string[];
  messages?: string[];
  episodes?: { episode_id: string; content?: string; gone?: boolean }[];
}

/** A part of a prompt. role: whose words the model takes it for. */
interface Part {
  role: string;
  what: string;
  content: string;
}

/** The most messages that a run reads. */
const MESSAGES = 200;
const FORBIDDEN = 403;
const NOT_FOUND = 404;

/** The prompt of a call of the model, put together from what the run's row and its events refer to. */
export function Prompt({ retain, run, events, step }: { retain: Retain; run: Schemas["InspectedRun"]; events: readonly Schemas["RunEvent"][]; step: Step }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="prompt" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Prompt</summary>
      {open && <Parts retain={retain} run={run} events={events} step={step} />}
    </details>
  );
}

function Parts({ retain, run, events, step }: { retain: Retain; run: Schemas["InspectedRun"]; events: readonly Schemas["RunEvent"][]; step: Step }) {
  const found = useLoaded(
    async () => [...(await instructions(retain, run)), ...(await before(retain, run)), ...turnsBefore(events, step)],
    [step.seq],
  );
  return (
    <Show of={found}>
      {(parts) => (
        <>
          <p class="quiet">Put together from what the run refers to, as it was then; long memories are shortened in the prompt itself.</p>
          <ol class="messages">
            {parts.map((part, at) => (
              <li key={at} class={part.role}><b>{part.role}</b> <span class="quiet">{part.what}</span><pre>{part.content}</pre></li>
            ))}
          </ol>
        </>
      )}
    </Show>
  );
}

/** Return the agent's instructions: of the version with which the run began, or as the repository has them now. */
async function instructions(retain: Retain, run: Schemas["InspectedRun"]): Promise<Part[]> {
  const version = run.agent_version;
  const shown: Promise<{ definition: Record<string, unknown> | null }> = version === null ? retain.agents.get(run.agent_type) : retain.agents.version(run.agent_type, version);
  const definition = (await unless([FORBIDDEN, NOT_FOUND], shown))?.definition;
  const what = version === null ? "the agent’s instructions, as they are now" : `the agent’s instructions, version ${version}`;
  return [{ role: "system", what, content: definition == null ? "(not to be seen here)" : text(definition.instructions) }];
}

/** Return what the model read before the run's first turn, with the texts that are still there. */
async function before(retain: Retain, run: Schemas["InspectedRun"]): Promise<Part[]> {
  const read = run.input as Read;
  const known = async (id: string): Promise<string> => {
    const memory = await unless([NOT_FOUND], retain.memories.get(id));
    return memory === undefined ? `${id} (deleted since)` : textThen(memory, run.created_at_ms);
  };
  const [profile, records, messages] = await Promise.all([
    Promise.all((read.profile ?? []).map(known)),
    Promise.all((read.records ?? []).map(({ id }) => known(id))),
    messagesOf(retain, run, read.messages ?? []),
  ]);
  const episodes = (read.episodes ?? []).map((one) => one.content ?? "(removed since)");
  const memory = (what: string, lines: string[]): Part[] => (lines.length === 0 ? [] : [{ role: "memory", what, content: lines.join("\n") }]);
  return [
    ...messages,
    ...memory("what is known of the user", profile),
    ...memory("recalled", records),
    ...memory("earlier turns", episodes),
    { role: "user", what: "the input", content: text(read.input) },
  ];
}

/** Return the messages of the conversation that the run read: the newest of those before its own, whatever came later. */
async function messagesOf(retain: Retain, run: Schemas["InspectedRun"], ids: readonly string[]): Promise<Part[]> {
  if (ids.length === 0) return [];
  const params = {
    path: { tenant: retain.tenant, agent_type: run.agent_type, instance_id: run.instance_id },
    query: { order: "desc" as const, cursor: `${run.run_id}.0`, limit: MESSAGES },
  };
  const page = (await retain.api.GET("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/messages", { params })).data!;
  const known = new Map(page.messages.map((one) => [one.message_id, one]));
  return ids.map((id) => {
    const { role, content } = known.get(id) ?? { role: "user", content: `${id} (removed since)` };
    return { role, what: "the conversation", content };
  });
}

/** Return the content that a memory had at a time, by its events. */
function textThen(memory: Schemas["MemoryWithEvents"], atMs: number): string {
  const then = memory.events.filter((event) => event.at_ms <= atMs && typeof event.data.content === "string").at(-1);
  return String(then?.data.content ?? memory.content);
}

/** Return what the earlier turns of the run add: answers of the model and of tools, without those that were cut. */
export function turnsBefore(events: readonly Schemas["RunEvent"][], step: Step): Part[] {
  const cut = new Set((eventOf(step, "model_asked")?.data.cut ?? []) as number[]);
  const parts: Part[] = cut.size === 0 ? [] : [{ role: "memory", what: "a summary of cut turns", content: `turns ${[...cut].join(", ")}` }];
  for (const earlier of stepsOf(events.filter((event) => event.seq < step.seq))) {
    if (cut.has(earlier.turn)) continue;
    const answered = eventOf(earlier, "model_answered");
    const tool = eventOf(earlier, "tool_answered");
    if (answered !== undefined) {
      const calls = ((answered.data.calls ?? []) as { name: string; arguments: unknown }[]).map((call) => `→ ${call.name} ${JSON.stringify(call.arguments)}`);
      parts.push({ role: "assistant", what: `turn ${earlier.turn}`, content: [answered.data.content, ...calls].filter(Boolean).join("\n") });
    } else if (tool !== undefined) {
      parts.push({ role: "tool", what: String(tool.data.name), content: text(tool.data.content) });
    }
  }
  return parts;
}
