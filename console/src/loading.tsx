import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type Pages, RetainError } from "retain-client";

/** What is known of something that is fetched. */
export type Loaded<Value> = { value: Value } | { error: unknown } | undefined;

/** Fetch something now, and again when one of `on` changes or after each `everyMs`. */
export function useLoaded<Value>(load: () => Promise<Value>, on: unknown[], everyMs?: number): Loaded<Value> {
  const [loaded, setLoaded] = useState<Loaded<Value>>(undefined);
  useEffect(() => {
    let current = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = async () => {
      const found = await load().then((value) => ({ value }), (error: unknown) => ({ error }));
      if (!current) return;
      setLoaded(found);
      if (everyMs !== undefined) timer = setTimeout(again, everyMs);
    };
    setLoaded(undefined);
    void again();
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, on);
  return loaded;
}

/** Show what is fetched: that it is under way, why it failed, or itself. */
export function Show<Value>({ of, children }: { of: Loaded<Value>; children: (value: Value) => ComponentChildren }) {
  if (of === undefined) return <p class="quiet" role="status">Loading …</p>;
  if ("error" in of) return <Failure error={of.error} />;
  return <>{children(of.value)}</>;
}

/** Say why something failed. */
export function Failure({ error }: { error: unknown }) {
  const known = error instanceof RetainError;
  return (
    <p class="failure" role="alert">
      {known ? error.message : "The page failed to read the answer."} {known && <code>{error.code}</code>}
    </p>
  );
}

/** The entries of a list that are shown at once. */
const SHOWN = 100;

/** Return the first entries of a list, and whether there are more. */
export async function newest<Entry>(list: Pages<Entry>): Promise<[Entry[], boolean]> {
  const found: Entry[] = [];
  for await (const entry of list) {
    if (found.length === SHOWN) return [found, true];
    found.push(entry);
  }
  return [found, false];
}

/** Say that a list has more entries than are shown. */
export function More({ of }: { of: boolean }) {
  return of ? <p class="quiet">The first {SHOWN} are shown.</p> : null;
}
