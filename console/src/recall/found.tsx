import type { ComponentChildren } from "preact";
import type { Schemas } from "retain-client";

import { Nothing } from "../loading.tsx";
import { addressOf } from "../place.ts";
import { cut, LISTED } from "../shown.ts";
import { mostOf, Parts } from "./parts.tsx";

type Candidate = Schemas["RecalledMemory"] & { left_out?: string };

/** What each source is called. */
const SOURCES: Record<string, string> = {
  words: "words",
  vectors: "vectors",
  recent: "its signature, as the index may not show it yet",
  exact: "an exact term",
  dates: "the time",
  standing: "a standing instruction",
  filter: "the filter",
};

/** What a recall found and what was just below it, each with what its score is made of. note: of a candidate, at its right. */
export function Found({ recall, minScore, note }: {
  recall: Schemas["Recall"];
  minScore: number;
  note?: (candidate: Candidate) => ComponentChildren;
}) {
  const below = recall.runners_up ?? [];
  const most = mostOf([...recall.memories, ...below]);
  const last = recall.memories.at(-1);
  const why = (one: Schemas["RunnerUp"]) => {
    if (one.left_out === "min_score") return `its relevance ${one.relevance.toFixed(2)} is below ${minScore}`;
    return last === undefined ? "others rank higher" : `${Math.max(0, last.score - one.score).toFixed(2)} below the last that is shown`;
  };
  return (
    <>
      {recall.degraded.length > 0 && <p class="failure">This recall did without: {recall.degraded.join(", ")}</p>}
      {recall.memories.length === 0 && <Nothing>Nothing is recalled.</Nothing>}
      <ol class="recalled">
        {recall.memories.map((one, at) => <Row key={one.id} rank={at + 1} found={one} most={most} note={note?.(one)} />)}
      </ol>
      {below.length > 0 && (
        <>
          <p class="subhead">Just below</p>
          <ol class="recalled below">
            {below.map((one, at) => (
              <Row key={one.id} rank={recall.memories.length + at + 1} found={one} most={most} why={why(one)} note={note?.(one)} />
            ))}
          </ol>
        </>
      )}
    </>
  );
}

function Row({ rank, found, most, why, note }: {
  rank: number;
  found: Candidate;
  most: number;
  why?: string;
  note: ComponentChildren;
}) {
  const sources = (found.found_by ?? []).map((one) => SOURCES[one] ?? one);
  return (
    <li>
      <span class="rank">{rank}</span>
      <div class="said">
        <a href={addressOf(found.tenant_id, "memory", found.id)} dir="auto">{cut(found.content, LISTED)}</a>
        <p class="quiet">
          found by {sources.length === 0 ? "what is next to it" : sources.join(", ")}; relevance {found.relevance.toFixed(2)}
          {why !== undefined && <>; <b>{why}</b></>}
        </p>
      </div>
      <span class="number">{found.score.toFixed(2)} {note}</span>
      <Parts of={found.components ?? {}} most={most} />
    </li>
  );
}
