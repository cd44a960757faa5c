import { words } from "../shown.ts";

/** The parts of scores in the order in which they are drawn: each has its colour in every bar. */
const ORDER = ["words", "vector", "exact", "related", "around", "context", "following"];
const OTHERS = 7;

/** Return the number of a part's colour. */
export function colourOf(name: string): number {
  const at = ORDER.indexOf(name);
  return at < 0 ? OTHERS : at;
}

/** Return the parts of a score that are not 0, in the order of their colours. */
export function partsOf(components: Record<string, number>): [string, number][] {
  const parts = Object.entries(components).filter(([, value]) => Math.abs(value) >= 0.0005);
  return parts.toSorted(([one], [other]) => colourOf(one) - colourOf(other));
}

/** A score as one bar: a piece for each part that adds to it, and below it what each part is. most: the score of a whole bar. */
export function Parts({ of, most }: { of: Record<string, number>; most: number }) {
  const parts = partsOf(of);
  const added = parts.filter(([, value]) => value > 0);
  const lost = parts.filter(([, value]) => value < 0);
  const whole = Math.max(most, 0.001);
  let from = 0;
  return (
    <div class="parts">
      <svg class="bar stacked" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={parts.map(([name, value]) => `${words(name)} ${value.toFixed(2)}`).join(", ")}>
        <rect class="empty" width="100" height="4" />
        {added.map(([name, value]) => {
          const x = from;
          from += (value / whole) * 100;
          return <rect key={name} class={`part-${colourOf(name)}`} x={x} width={(value / whole) * 100} y="0" height="4" />;
        })}
      </svg>
      <ul>
        {added.map(([name, value]) => <li key={name}><span class={`key part-${colourOf(name)}`} /> {words(name)} <b>{value.toFixed(2)}</b></li>)}
        {lost.map(([name, value]) => <li key={name} class="lost">{words(name)} <b>{value.toFixed(2)}</b></li>)}
      </ul>
    </div>
  );
}

/** Return the score that fills a bar: the largest sum of what adds to a score. */
export function mostOf(found: readonly { components?: Record<string, number> }[]): number {
  const sums = found.map((one) => Object.values(one.components ?? {}).reduce((sum, value) => sum + Math.max(0, value), 0));
  return Math.max(0.001, ...sums);
}
