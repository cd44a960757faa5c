import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Schemas } from "retain-client";

import { Choice, Field, givenIn, TimeField } from "../form.tsx";
import { Failure, InvalidField } from "../loading.tsx";
import { text } from "../shown.ts";
import { KINDS } from "./memories.tsx";

type Memory = Schemas["MemoryWithEvents"];

/** The fields of a memory besides its content and its validity, to be changed together. */
export function Fields({ memory, edit }: { memory: Memory; edit: (fields: Record<string, unknown>) => () => void }) {
  const [error, setError] = useState<unknown>(undefined);
  const form = useRef<HTMLFormElement>(null);
  const shown = useRef<Record<string, string>>({});
  useLayoutEffect(() => {
    shown.current = givenIn(form.current!);
  }, []);
  const save = (event: SubmitEvent) => {
    event.preventDefault();
    try {
      const changed = changedIn(memory, shown.current, givenIn(event.currentTarget as HTMLFormElement));
      setError(undefined);
      if (Object.keys(changed).length > 0) edit(changed)();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <details class="fields">
      <summary>Other fields</summary>
      <form ref={form} class="conditions" onSubmit={save}>
        <Choice label="Kind" name="kind" value={memory.kind} of={KINDS} none={memory.kind} />
        <Field label="Subject" name="subject" value={memory.subject ?? undefined} />
        <Field label="Predicate" name="predicate" value={memory.predicate ?? undefined} />
        <Field label="Object" name="object" value={memory.object ?? undefined} />
        <Field label="Confidence" name="confidence" value={String(memory.confidence)} type="number" min="0" max="1" step="any" required />
        <Field label="Importance" name="importance" value={String(memory.importance)} type="number" min="0" max="1" step="any" required />
        <TimeField label="Expires" name="expires_at_ms" value={memory.expires_at_ms === null ? undefined : String(memory.expires_at_ms)} />
        <label class="wide">Metadata (JSON) <textarea name="metadata" rows={2} defaultValue={JSON.stringify(memory.metadata)} /></label>
        <button>Save fields</button>
      </form>
      {error !== undefined && <Failure error={error} />}
    </details>
  );
}

/**
 * Return the fields that somebody changed. Throws an InvalidField for metadata that is not a JSON object.
 *
 * A field shows no line breaks, no milliseconds and no time that it cannot have: what nobody touched stays as the memory has it.
 * shown: what the form said before, as `given` is what it says now.
 */
export function changedIn(
  memory: Pick<Memory, "kind" | "subject" | "predicate" | "object" | "confidence" | "importance" | "expires_at_ms" | "metadata">,
  shown: Record<string, string>,
  given: Record<string, string>,
): Record<string, unknown> {
  const { kind = memory.kind, subject = null, predicate = null, object = null, confidence, importance, expires_at_ms, metadata = "{}" } = given;
  const wanted = {
    kind, subject, predicate, object,
    confidence: Number(confidence),
    importance: Number(importance),
    expires_at_ms: expires_at_ms === undefined ? null : Number(expires_at_ms),
    metadata: objectIn(metadata),
  };
  const touched = Object.entries(wanted).filter(([name]) => given[name] !== shown[name]);
  return Object.fromEntries(touched.filter(([name, value]) => text(value) !== text(memory[name as keyof typeof wanted])));
}

function objectIn(written: string): unknown {
  let found: unknown;
  try {
    found = JSON.parse(written);
  } catch {
    found = undefined;
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new InvalidField('Metadata is a JSON object, such as {"checked": true}.');
  return found;
}
