import type { Schemas } from "retain-client";

import { addressOf } from "../place.ts";
import { cut, LISTED, time, words } from "../shown.ts";

/** What is known of somebody under one predicate, the earliest first. */
export interface Lane {
  predicate: string;
  facts: Schemas["Memory"][];
}

/** Return the facts among these memories by what they say, the lanes in the order of their first fact. */
export function lanesOf(memories: readonly Schemas["Memory"][]): Lane[] {
  const lanes = new Map<string, Schemas["Memory"][]>();
  const facts = memories.filter((memory) => memory.predicate !== null);
  for (const fact of facts.toSorted((one, other) => one.valid_from_ms - other.valid_from_ms)) {
    const predicate = fact.predicate!.split(":")[0]!;
    lanes.set(predicate, [...(lanes.get(predicate) ?? []), fact]);
  }
  return [...lanes].map(([predicate, found]) => ({ predicate, facts: found }));
}

/** Somebody's facts over time: a lane for each predicate, a bar for each fact from when it held until when. */
export function Lanes({ lanes, nowMs }: { lanes: readonly Lane[]; nowMs: number }) {
  const all = lanes.flatMap((lane) => lane.facts);
  const start = Math.min(...all.map((fact) => fact.valid_from_ms));
  const width = Math.max(1, nowMs - start);
  const at = (ms: number) => ((ms - start) / width) * 100;
  return (
    <>
      <ol class="lanes">
        {lanes.map(({ predicate, facts }) => (
          <li key={predicate}>
            <b>{words(predicate)}</b>
            <ol>
              {facts.map((fact) => {
                const from = Math.min(98, Math.max(0, at(fact.valid_from_ms)));
                const until = Math.min(100, at(fact.valid_to_ms ?? nowMs));
                return (
                  <li key={fact.id}>
                    <span class="fact">
                      <a href={addressOf(fact.tenant_id, "memory", fact.id)} dir="auto">{cut(fact.object ?? fact.content, LISTED)}</a>{" "}
                      <span class="quiet">{time(fact.valid_from_ms)}{fact.valid_to_ms !== null ? ` to ${time(fact.valid_to_ms)}` : " to now"}</span>
                    </span>
                    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="empty" width="100" y="0.5" height="3" />
                      <rect class={fact.valid_to_ms === null ? "tool" : "run"} x={from} width={Math.max(2, until - from)} y="0.5" height="3" />
                    </svg>
                  </li>
                );
              })}
            </ol>
          </li>
        ))}
      </ol>
      <p class="ends"><span>{time(start)}</span><span>{time(nowMs)}</span></p>
    </>
  );
}
