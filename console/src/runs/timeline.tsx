import { duration } from "../shown.ts";
import type { Step } from "./steps.ts";

/** Pauses that are longer than this share of what happens are drawn as short as it. */
const LONGEST_PAUSE = 0.1;

/** Where a step begins and ends, from 0 to 1; folded: after a long pause that is drawn short. */
export interface Drawn {
  from: number;
  to: number;
  folded: boolean;
}

/** Return where each step begins and ends, from 0 to 1, with long pauses between steps folded. */
export function scale(steps: readonly Step[], nowMs: number): Drawn[] {
  const ends = steps.map((step) => step.toMs ?? nowMs);
  const busy = steps.reduce((sum, step, at) => sum + ends[at]! - step.fromMs, 0);
  const most = Math.max(1, busy) * LONGEST_PAUSE;
  let last = steps[0]?.fromMs ?? 0;
  let folded = 0;
  const drawn = steps.map((step, at) => {
    const pause = step.fromMs - last;
    if (pause > most) folded += pause - most;
    last = Math.max(last, ends[at]!);
    return { from: step.fromMs - folded, to: ends[at]! - folded, folded: pause > most };
  });
  const start = drawn[0]?.from ?? 0;
  const width = Math.max(1, ...drawn.map((one) => one.to - start));
  return drawn.map((one) => ({ from: (one.from - start) / width, to: (one.to - start) / width, folded: one.folded }));
}

/** The bar of one step, to the time of its run. */
export function Bar({ step, from, to, folded }: { step: Step } & Drawn) {
  const took = step.toMs === undefined ? "under way" : duration(step.toMs - step.fromMs);
  return (
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={took}>
      {folded && <rect class="folded" x={Math.max(0, from * 100 - 1)} width="0.6" y="0" height="4" />}
      <rect class={`${step.kind}${step.failed ? " failed" : ""}`} x={from * 99.4} width={Math.max(0.6, (to - from) * 99.4)} y="0.5" height="3" />
    </svg>
  );
}
