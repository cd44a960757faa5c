import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Retain } from "retain-client";

import { newest, useLoaded } from "./loading.tsx";
import { addressOf, type Place } from "./place.ts";
import { isTime } from "./shown.ts";

/** Return what a form says, by the names of its fields: times as epoch milliseconds, without empty fields. */
export function givenIn(form: HTMLFormElement): Record<string, string> {
  const given: Record<string, string> = {};
  for (const field of form.elements) {
    if (!(field instanceof HTMLInputElement || field instanceof HTMLSelectElement || field instanceof HTMLTextAreaElement)) continue;
    if (field.name === "" || (field.type === "checkbox" && !(field as HTMLInputElement).checked)) continue;
    const value = field.value.trim();
    if (value !== "") given[field.name] = field.type === "datetime-local" ? String(new Date(value).getTime()) : value;
  }
  return given;
}

/** A form whose fields are the conditions in the address: sending it goes there. Conditions that it has no field for stay. */
export function Conditions({ place, keep = [], action, children }: {
  place: Place;
  keep?: string[];
  action: string;
  children: ComponentChildren;
}) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const kept = Object.fromEntries(keep.map((name) => [name, place.query[name]]));
    location.hash = addressOf(place.tenant, place.view, place.id, { ...kept, ...givenIn(event.currentTarget as HTMLFormElement) });
  };
  return (
    <form key={JSON.stringify(place.query)} class="conditions" role="search" onSubmit={submit}>
      {children}
      <button class="primary">{action}</button>
    </form>
  );
}

/** A field of text. */
export function Field({ label, name, value, ...others }: { label: string; name: string; value: string | undefined } & Record<string, unknown>) {
  return <label>{label} <input name={name} defaultValue={value ?? ""} {...others} /></label>;
}

/** A field of one of several values, or of none. */
export function Choice({ label, name, value, of, none }: {
  label: string;
  name: string;
  value: string | undefined;
  of: readonly string[];
  none: string;
}) {
  return (
    <label>{label} <select name={name}>
      <option value="">{none}</option>
      {of.map((one) => <option key={one} selected={one === value}>{one}</option>)}
    </select></label>
  );
}

/** A field of a time. value: epoch milliseconds, as text. */
export function TimeField({ label, name, value }: { label: string; name: string; value: string | undefined }) {
  return <label>{label} <input type="datetime-local" step="1" name={name} defaultValue={value ? localTime(Number(value)) : ""} /></label>;
}

/** Return a time as a field of times takes it: at this place, to the second. Empty for one that no field can have. */
export function localTime(ms: number): string {
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return isTime(local.getTime()) ? local.toISOString().slice(0, -5).replace(/^\+0*/, "") : "";
}

/** Agents that a field suggests, of the many that a deployment may have. */
const SUGGESTED = 200;

/** A field of an agent, which suggests the first ones of the tenant. */
export function AgentField({ retain, value, label = "Agent", name = "agent_type" }: { retain: Retain; value: string | undefined; label?: string; name?: string }) {
  const agents = useLoaded(() => newest(retain.agents.list({ limit: SUGGESTED }), SUGGESTED), [retain.tenant]);
  const [known] = agents !== undefined && "value" in agents ? agents.value : [[]];
  return (
    <>
      <Field label={label} name={name} value={value} list={`agents-${name}`} autocomplete="off" />
      <datalist id={`agents-${name}`}>{known.map((one) => <option key={one.agent_type} value={one.agent_type} />)}</datalist>
    </>
  );
}

/** Have the browser ask before the page is left, as for the login, while something that was written is not saved. */
export function useUnsaved(unsaved: boolean): void {
  useEffect(() => {
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    if (unsaved) addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [unsaved]);
}

/** A button that first shows what follows from it, and does it when it is pressed again. What is shown has the focus. */
export function Confirmed({ name, act, children }: { name: string; act: () => void; children: ComponentChildren }) {
  const [asked, setAsked] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const question = useRef<HTMLDivElement>(null);
  const before = useRef(false);
  useLayoutEffect(() => {
    if (asked !== before.current) (asked ? question : button).current!.focus();
    before.current = asked;
  }, [asked]);
  if (!asked) return <button ref={button} onClick={() => setAsked(true)}>{name} …</button>;
  return (
    <div ref={question} class="confirmation" role="group" aria-label={name} tabIndex={-1}>
      {children}
      <p class="actions"><button class="danger" onClick={act}>{name}</button> <button onClick={() => setAsked(false)}>Keep</button></p>
    </div>
  );
}
