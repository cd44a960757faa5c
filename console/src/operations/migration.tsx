import type { Retain, Schemas } from "retain-client";

import { Show, useLoaded } from "../loading.tsx";
import { counted, time } from "../shown.ts";

const PHASES = ["before", "reads both", "writes canonical keys, copies legacy ones", "canonical keys alone"];

/** The migration of keys, of the whole deployment: its phase, what was measured, and what is in the way of the next one. */
export function Migration({ retain }: { retain: Retain }) {
  const found = useLoaded(async () => (await retain.api.GET("/admin/namespaces")).data!, []);
  return (
    <>
      <h2>Migration of keys</h2>
      <Show of={found}>
        {(migration) => (
          <>
            <ol class="phases" aria-label="Phases">
              {phasesOf(migration).map((phase) => (
                <li key={phase} class={phase < migration.phase ? "past" : phase === migration.phase ? "present" : ""} aria-current={phase === migration.phase ? "step" : undefined}>
                  {phase}{PHASES[phase] !== undefined && <span class="quiet"> {PHASES[phase]}</span>}
                </li>
              ))}
            </ol>
            <dl class="facts">
              {migration.since_ms > 0 && <><dt>Since</dt><dd>{time(migration.since_ms)}</dd></>}
              <dt>Legacy keys</dt><dd>{migration.patterns.length === 0 ? "no patterns: there are none" : counted(migration.patterns.length, "pattern")}</dd>
              <dt>Settings</dt>
              <dd>
                writes canonical keys: {yes(migration.flags.write_canonical)}, reads legacy keys: {yes(migration.flags.compat_read)}
                {!migration.flags.fit && <span class="failure"> they are not those of the phase</span>}
              </dd>
              {migration.backfill.map((one) => <><dt>Backfill</dt><dd><code>{JSON.stringify(one)}</code></dd></>)}
            </dl>
            {migration.roll_back && <p class="failure">Roll it back: hit rates fell below the baseline.</p>}
            {migration.obstacles.map((one) => <p key={one} class="cut">In the way of the next phase: {one}</p>)}
          </>
        )}
      </Show>
    </>
  );
}

function phasesOf({ phase }: Schemas["KeyMigration"]): number[] {
  return Array.from({ length: Math.max(PHASES.length, phase + 1) }, (_, at) => at);
}

function yes(value: boolean): string {
  return value ? "yes" : "no";
}
