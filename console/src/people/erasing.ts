import { useRef, useState } from "preact/hooks";
import type { Schemas } from "retain-client";

/** A large erasure is continued for as long while somebody looks at it; then it continues with the daily work. */
const LONGEST_MS = 60_000;

/** What is known of an erasure: its receipt, or why a part of it failed. */
export type Erased = { receipt: Schemas["Receipt"] } | { error: unknown } | undefined;

/** The state of an erasure, and a function that does it, slice by slice; not again while it does so. slice: does the next one. */
export function useErasing(slice: () => Promise<Schemas["Erasure"]>): [Erased, () => void] {
  const [erased, setErased] = useState<Erased>(undefined);
  const underWay = useRef(false);
  const erase = async () => {
    for (const untilMs = Date.now() + LONGEST_MS; ; ) {
      const { receipt, retry_after_ms } = await slice();
      setErased({ receipt });
      if (retry_after_ms === null || Date.now() + retry_after_ms > untilMs) return;
      await new Promise((resolve) => setTimeout(resolve, retry_after_ms));
    }
  };
  const begin = () => {
    if (underWay.current) return;
    underWay.current = true;
    void erase().catch((error: unknown) => setErased({ error })).finally(() => (underWay.current = false));
  };
  return [erased, begin];
}
