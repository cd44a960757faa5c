import { useEffect } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { useMay } from "../access.tsx";
import { Show, useActions, useChanges } from "../loading.tsx";
import { addressOf, type Place, placeOf } from "../place.ts";
import { cost, counted, duration, text, time } from "../shown.ts";
import { Context } from "./context.tsx";
import { Continue, Continues } from "./continued.tsx";
import { useRun } from "./follow.ts";
import { RawEvents } from "./raw.tsx";
import { Timeline } from "./rows.tsx";

/** The key that shows the events as they were logged, and hides them again. */
const RAW_KEY = "e";

/** One run: what it was asked and answered, and everything that happened in it. */
export function RunView({ retain, place, runId }: { retain: Retain; place: Place; runId: string }) {
  const [changes, changed] = useChanges();
  const found = useRun(retain, runId, changes);
  const raw = place.query.raw === "true";
  const turned = turnedOf(place);
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null;
      if (event.key === RAW_KEY && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) location.hash = turnedOf(placeOf(location.hash));
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  return (
    <Show of={found}>
      {({ run, events, whole }) => (
        <>
          <div class="head">
            <h1>{run.agent_type}</h1>
            <span class={`status ${run.status}`}>{run.status}</span>
            {run.completed_at_ms === null && <span class="live">live</span>}
          </div>
          <Answers retain={retain} run={run} changed={changed} />
          <div class="talk">
            <Asked run={run} shown={place.query.at === "asked"} />
            <section aria-label="Answered">
              <h2>Answered</h2>
              <pre dir="auto" class={run.error ? "bad" : ""}>{run.output ?? (run.error ? text(run.error) : "nothing yet")}</pre>
            </section>
          </div>
          <Facts run={run} />
          <div class="head">
            <h2>{raw ? "Events" : "Timeline"}</h2>
            {!whole && <span class="quiet" role="status">{counted(events.length, "event")} read …</span>}
            <a class="aside" href={turned}>{raw ? "Timeline" : "Raw events"} <kbd>{RAW_KEY}</kbd></a>
          </div>
          {raw ? <RawEvents events={events} moment={place.query} /> : <Timeline retain={retain} run={run} events={events} moment={place.query} />}
          <Context run={run} />
        </>
      )}
    </Show>
  );
}

/** Return the address of the other way to show a run: its timeline, or its events as they were logged. */
function turnedOf({ tenant, view, id, query }: Place): string {
  return addressOf(tenant, view, id, { ...query, raw: query.raw === "true" ? undefined : "true" });
}

interface File {
  id: string;
  name: string;
  media_type: string;
  bytes: number;
}

/** What the run was asked, with the files that came with it. shown: whether the address names it. */
function Asked({ run, shown }: { run: Schemas["InspectedRun"]; shown: boolean }) {
  const may = useMay();
  const files = (run.input.attachments ?? []) as File[];
  const content = ({ id }: File) => `/v1/agents/${encodeURIComponent(run.tenant_id)}/attachments/${encodeURIComponent(id)}/content`;
  return (
    <section aria-label="Asked" aria-current={shown ? "location" : undefined}>
      <h2>Asked</h2>
      <pre dir="auto">{text(run.input.input ?? run.input)}</pre>
      {files.length > 0 && (
        <ul class="files" aria-label="Attachments">
          {files.map((file) => (
            <li key={file.id}>
              {may("download_attachment") ? <a href={content(file)} download={file.name} dir="auto">{file.name}</a> : <bdi>{file.name}</bdi>}{" "}
              <span class="quiet">{file.media_type}, {counted(file.bytes, "byte")}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Facts({ run }: { run: Schemas["InspectedRun"] }) {
  const ended = run.completed_at_ms;
  return (
    <dl class="facts">
      <dt>Run</dt><dd><code>{run.run_id}</code></dd>
      <dt>Agent</dt>
      <dd><a href={addressOf(run.tenant_id, "agents", run.agent_type, run.agent_version === null ? {} : { version: String(run.agent_version) })}>{run.agent_type}{run.agent_version !== null && `, version ${run.agent_version}`}</a></dd>
      <dt>Instance</dt><dd>{run.instance_id}</dd>
      {run.user_id !== null && <><dt>User</dt><dd><a href={addressOf(run.tenant_id, "people", run.user_id)}>{run.user_id}</a></dd></>}
      {run.by !== null && <><dt>Started by</dt><dd>{run.by}</dd></>}
      <dt>Began</dt><dd>{time(run.created_at_ms)}{ended !== null && `, took ${duration(ended - run.created_at_ms)}`}</dd>
      <dt>Model</dt>
      <dd>{run.model}: {run.input_tokens.toLocaleString()} tokens read{run.cached_input_tokens > 0 && <> ({run.cached_input_tokens.toLocaleString()} from a cache)</>}, {run.output_tokens.toLocaleString()} written, {cost(run.cost)}</dd>
      <Continues run={run} />
      {run.parent_run_id !== null && (
        <><dt>Asked by</dt><dd><a href={addressOf(run.tenant_id, "runs", run.parent_run_id)}>{run.parent_run_id}</a></dd></>
      )}
    </dl>
  );
}

/** What an operator may do now: answer the run's question, cancel it, or retry it. */
function Answers({ retain, run, changed }: { retain: Retain; run: Schemas["InspectedRun"]; changed: () => void }) {
  const may = useMay();
  const [failure, act] = useActions(changed);
  const { agent_type, instance_id, run_id, waiting_for } = run;
  if (run.status === "failed" || run.status === "cancelled") return may("retry_run") ? <Continue retain={retain} run={run} /> : null;
  const asks = waiting_for?.kind === "approval";
  if (run.completed_at_ms !== null || !(asks || may("cancel_run"))) return null;
  return (
    <div class="question">
      {waiting_for?.kind === "approval" && <><p>May it call <b>{waiting_for.tool}</b>?</p><pre>{text(waiting_for.arguments)}</pre></>}
      <p class="actions">
        {waiting_for?.kind === "approval" && may("resume_run") && (
          <>
            <button class="primary" onClick={act(() => retain.runs.approve(agent_type, instance_id, run_id, waiting_for.call))}>Approve</button>
            <button onClick={act(() => retain.runs.reject(agent_type, instance_id, run_id, waiting_for.call))}>Reject</button>
          </>
        )}
        {may("cancel_run") && <button onClick={act(() => retain.runs.cancel(agent_type, instance_id, run_id))}>Cancel</button>}
      </p>
      {failure}
    </div>
  );
}
