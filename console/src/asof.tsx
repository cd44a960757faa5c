import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Retain } from "retain-client";

import { localTime } from "./form.tsx";
import { useLoaded } from "./loading.tsx";
import { addressOf, type Place } from "./place.ts";
import { isTime, time } from "./shown.ts";

const STEPS = 1_000;
const DAY_MS = 86_400_000;

/** Return the time of which things are shown, undefined for now. */
export function asOf({ query }: Place): number | undefined {
  const at = Number(query.as_of_ms);
  return query.as_of_ms !== undefined && isTime(at) ? at : undefined;
}

/** A slider from just before the tenant's first memory to now: what is shown is what was known then. */
export function AsOf({ retain, place }: { retain: Retain; place: Place }) {
  const at = asOf(place);
  const [moved, setMoved] = useState<number | undefined>(undefined);
  const oldest = useLoaded(async () => {
    const params = { path: { tenant: retain.tenant }, query: { all: true, limit: 1 } };
    return (await retain.api.GET("/v1/tenants/{tenant}/memories", { params })).data!.memories[0]?.recorded_at_ms;
  }, []);
  const nowMs = Date.now();
  const first = oldest !== undefined && "value" in oldest ? oldest.value : undefined;
  const begun = first === undefined ? nowMs - DAY_MS : first - 1;
  const startMs = Math.min(begun, at ?? begun);
  const width = Math.max(1, nowMs - startMs);
  const shown = moved ?? at ?? nowMs;
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => {
    // What is set while somebody types takes away the digit that was typed last.
    if (field.current !== document.activeElement) field.current!.value = localTime(shown);
  });
  const goTo = (ms: number | undefined) => {
    setMoved(undefined);
    const { cursor: _, ...query } = place.query;
    const address = addressOf(place.tenant, place.view, place.id, { ...query, as_of_ms: ms === undefined ? undefined : String(Math.round(ms)) });
    // Slider and field change with every key: all times on the way are one step for going back.
    if (at === undefined || ms === undefined) location.hash = address;
    else location.replace(address);
  };
  /** Go to a typed time. A year that is half typed is long before all times that there are. */
  const typed = (value: string) => {
    const ms = new Date(value).getTime();
    if (ms >= 0) goTo(ms);
  };
  const msOf = (step: string) => startMs + (Number(step) / STEPS) * width;
  return (
    <div class={at === undefined ? "asof" : "asof past"} role="group" aria-label="Time">
      <label class="slide">
        As of
        <input
          type="range"
          min="0"
          max={STEPS}
          value={Math.round(((shown - startMs) / width) * STEPS)}
          aria-valuetext={time(shown)}
          onInput={(event) => setMoved(msOf(event.currentTarget.value))}
          onChange={(event) => goTo(Number(event.currentTarget.value) >= STEPS ? undefined : msOf(event.currentTarget.value))}
        />
      </label>
      <input
        type="datetime-local"
        step="1"
        ref={field}
        aria-label="As of this time"
        onChange={(event) => typed(event.currentTarget.value)}
      />
      {at === undefined ? <span class="quiet">now</span> : <button onClick={() => goTo(undefined)}>Back to now</button>}
    </div>
  );
}
