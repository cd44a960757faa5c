import { duration } from "../shown.ts";
import type { Step } from "./steps.ts";

/** Pauses that are longer than this share of what happens are drawn as short as it. */
const LONGEST_PAUSE = 0.1;
/** The share of the width that the names of folded pauses need, at least, between two of them. */
const APART = 0.12;

/** A pause in which nothing happened, and which is drawn short. at: where it ends, from 0 to 1. */
export interface Fold {
  at: number;
  ms: number;
}

/** The time of a run on a line from 0 to 1, on which long pauses are folded. */
export interface Axis {
  x: (ms: number) => number;
  folds: Fold[];
  /** How long the run took, and for how long something happened in it. */
  wholeMs: number;
  busyMs: number;
}

/** Return the axis of a run's steps. nowMs: when those end that have not ended. */
export function axisOf(steps: readonly Step[], nowMs: number): Axis {
  const spans = steps.map((step) => [step.fromMs, step.toMs ?? (step.interrupted ? step.fromMs : nowMs)] as const).toSorted(([one], [other]) => one - other);
  const start = spans[0]?.[0] ?? 0;
  const pauses: { untilMs: number; ms: number }[] = [];
  let busy = 0;
  let last = start;
  for (const [from, to] of spans) {
    if (from > last) pauses.push({ untilMs: from, ms: from - last });
    busy += Math.max(0, to - Math.max(from, last));
    last = Math.max(last, to);
  }
  const most = Math.max(1, busy) * LONGEST_PAUSE;
  const folded = pauses.filter(({ ms }) => ms > most);
  const width = Math.max(1, last - start - folded.reduce((sum, { ms }) => sum + ms - most, 0));
  const x = (ms: number) => {
    let cut = 0;
    for (const pause of folded) {
      if (pause.untilMs <= ms) cut += pause.ms - most;
      else if (pause.untilMs - pause.ms < ms) cut += Math.max(0, ms - (pause.untilMs - pause.ms) - most);
    }
    return Math.min(1, Math.max(0, (ms - start - cut) / width));
  };
  return { x, folds: folded.map(({ untilMs, ms }) => ({ at: x(untilMs), ms })), wholeMs: last - start, busyMs: busy };
}

/** The bar of one step, to the time of its run. */
export function Bar({ step, axis, nowMs }: { step: Step; axis: Axis; nowMs: number }) {
  const until = step.toMs ?? (step.interrupted ? step.fromMs : nowMs);
  const took = step.interrupted ? "interrupted" : step.toMs === undefined ? "under way" : duration(step.toMs - step.fromMs);
  const from = axis.x(step.fromMs) * 99.2;
  const width = Math.max(0.8, axis.x(until) * 99.2 - from);
  const kind = step.failed ? "failed" : step.interrupted ? "crash" : step.kind;
  return (
    <svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={took}>
      {axis.folds.length <= 20 && axis.folds.map((fold) => <rect key={fold.at} class="folded" x={fold.at * 99.2 - 0.3} width="0.3" y="0" height="4" />)}
      <rect class={kind} x={from} width={width} y="0.5" height="3" rx="0.4" />
    </svg>
  );
}

/** The line above the timeline: how long the run took, and the pauses that are folded. */
export function Scale({ axis }: { axis: Axis }) {
  let last = -1;
  const named = axis.folds.filter(({ at }) => at - last >= APART && at < 0.9 && (last = at) >= 0);
  return (
    <div class="scale" aria-hidden="true">
      <span>0</span>
      {named.map(({ at, ms }) => <span key={at} class="fold" style={{ left: `${at * 100}%` }}>⋯ {duration(ms)}</span>)}
      <span>{duration(axis.wholeMs)}</span>
    </div>
  );
}
