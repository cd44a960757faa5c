import type { ComponentChildren } from "preact";
import { useEffect, useReducer, useRef, useState } from "preact/hooks";
import { type Pages, RetainError } from "retain-client";

import { SESSION_ENDED } from "./api.ts";

/** What is known of something that is fetched. */
export type Loaded<Value> = { value: Value; stale?: unknown } | { error: unknown } | undefined;

/** Return what is known after a failure: what was known before, which is old by then, or the failure. */
export function afterFailure<Value>(before: Loaded<Value>, error: unknown): Loaded<Value> {
  return before !== undefined && "value" in before ? { value: before.value, stale: error } : { error };
}

/** Return after a time, and not before somebody looks at the page: a hidden one asks nothing. */
export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  if (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
}

/**
 * Fetch something now, and again when one of `on` changes, after each of its `changes`, and after each `everyMs`. What is
 * known stays until it is fetched again, unless it is something else that is wanted.
 */
export function useLoaded<Value>(load: () => Promise<Value>, on: unknown[], { changes = 0, everyMs }: { changes?: number; everyMs?: number } = {}): Loaded<Value> {
  const [loaded, setLoaded] = useState<Loaded<Value>>(undefined);
  useEffect(() => setLoaded(undefined), on);
  useEffect(() => {
    let current = true;
    const again = async () => {
      while (current) {
        const found: Loaded<Value> = await load().then((value) => ({ value }), (error: unknown) => ({ error }));
        if (current) setLoaded((before) => ("error" in found && everyMs !== undefined ? afterFailure(before, found.error) : found));
        if (everyMs === undefined) return;
        await pause(everyMs);
      }
    };
    void again();
    return () => {
      current = false;
    };
  }, [...on, changes]);
  return loaded;
}

/** A number of changes, on which what is loaded depends, and a function that counts one more: of two at a time, both. */
export function useChanges(): [number, () => void] {
  return useReducer<number, void>((changes) => changes + 1, 0);
}

/**
 * What somebody does: the last failure of it, and a function that does something and then `changed`.
 *
 * A button that is pressed again before that is done does nothing: it is not disabled, so that it keeps the focus.
 */
export function useActions(changed: () => void): [ComponentChildren, (action: () => Promise<unknown>) => (event?: Event) => void] {
  const [error, setError] = useState<unknown>(undefined);
  const underWay = useRef(new Set<unknown>()).current;
  const act = (action: () => Promise<unknown>) => (event?: Event) => {
    const pressed = event?.currentTarget;
    if (underWay.has(pressed)) return;
    underWay.add(pressed);
    setError(undefined);
    void action().then(changed, setError).finally(() => underWay.delete(pressed));
  };
  return [error === undefined ? null : <Failure error={error} />, act];
}

/** Show what is fetched: that it is under way, why it failed, or itself. */
export function Show<Value>({ of, children }: { of: Loaded<Value>; children: (value: Value) => ComponentChildren }) {
  if (of === undefined) return <p class="quiet" role="status">Loading …</p>;
  if ("error" in of) return <Failure error={of.error} />;
  return (
    <>
      {of.stale !== undefined && <div class="stale"><Failure error={of.stale} /><p class="quiet">What is shown is older. It is asked for again.</p></div>}
      {children(of.value)}
    </>
  );
}

/** Say why something failed. */
export function Failure({ error }: { error: unknown }) {
  if (error instanceof RetainError && error.code === SESSION_ENDED) {
    return <p class="failure" role="alert">{error.message} <a href="" onClick={(event) => (event.preventDefault(), location.reload())}>Sign in again</a> <code>{error.code}</code></p>;
  }
  if (error instanceof RetainError) return <p class="failure" role="alert">{error.message} <code>{error.code}</code></p>;
  if (error instanceof InvalidField) return <p class="failure" role="alert">{error.message}</p>;
  return <p class="failure" role="alert">The page failed to read the answer. Is the deployment reachable?</p>;
}

/** What somebody wrote into a field, and is not what it takes. */
export class InvalidField extends Error {}

/** The entries of a list that are shown at once. */
const SHOWN = 100;

/** Return the first entries of a list, and whether there are more. */
export async function newest<Entry>(list: Pages<Entry>, most = SHOWN): Promise<[Entry[], boolean]> {
  const found: Entry[] = [];
  for await (const entry of list) {
    if (found.length === most) return [found, true];
    found.push(entry);
  }
  return [found, false];
}

/** Say that a list has more entries than are shown. */
export function More({ of, most = SHOWN }: { of: boolean; most?: number }) {
  return of ? <p class="quiet">The first {most} are shown.</p> : null;
}

/** Say that there is nothing, and what would be here. more: whether the list has further pages, which may have something. */
export function Nothing({ children, more = false }: { children: ComponentChildren; more?: boolean }) {
  return <p class="nothing">{more ? "Nothing was found so far. The next page looks further." : children}</p>;
}

/** Return what is asked for, undefined where the server has none of it. statuses: with which it says so. */
export async function unless<Value>(statuses: readonly number[], asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof RetainError && statuses.includes(error.status ?? 0)) return undefined;
    throw error;
  }
}
