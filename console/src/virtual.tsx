import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Pixels above and below the window of which the rows are drawn too. */
const AROUND = 600;

/** What somebody does who moves the page. */
const MOVES = ["wheel", "touchmove", "keydown", "pointerdown"] as const;

/** Where each row of a list begins, and where the last one ends: a row that was not measured has the usual height. */
export function offsetsOf(keys: readonly number[], heights: ReadonlyMap<number, number>, usual: number): number[] {
  const offsets = [0];
  for (const key of keys) offsets.push(offsets.at(-1)! + (heights.get(key) ?? usual));
  return offsets;
}

/** Return the first and the one after the last row between two positions. */
export function rowsBetween(offsets: readonly number[], from: number, to: number): [number, number] {
  const rows = offsets.length - 1;
  return [Math.max(0, firstAfter(offsets, from) - 1), Math.min(rows, firstAfter(offsets, to))];
}

/** Return the number of the first offset that is greater than a position, by halves. */
function firstAfter(offsets: readonly number[], position: number): number {
  let low = 0;
  let high = offsets.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (offsets[middle]! > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** A list of any length, of which only the rows near the window are drawn. keys: of the rows, each once. at: the row to be shown. */
export function Virtual({ keys, usual, at, row, name }: {
  keys: readonly number[];
  usual: number;
  at: number | undefined;
  row: (index: number) => ComponentChildren;
  name: string;
}) {
  const list = useRef<HTMLOListElement>(null);
  const heights = useRef(new Map<number, number>()).current;
  const [, setDrawn] = useState(0);
  const redraw = () => setDrawn((drawn) => drawn + 1);
  const offsets = offsetsOf(keys, heights, usual);
  const top = list.current === null ? 0 : list.current.getBoundingClientRect().top;
  const [printed, setPrinted] = useState(false);
  const [first, end] = printed ? [0, keys.length] : rowsBetween(offsets, -top - AROUND, -top + innerHeight + AROUND);

  useEffect(() => {
    addEventListener("scroll", redraw, { passive: true });
    addEventListener("resize", redraw);
    // On paper there is no window to scroll: every row is drawn.
    const before = () => setPrinted(true);
    const after = () => setPrinted(false);
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      removeEventListener("scroll", redraw);
      removeEventListener("resize", redraw);
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  useLayoutEffect(redraw, []);
  const observer = useRef<ResizeObserver | undefined>(undefined);
  useLayoutEffect(() => {
    const measured = new ResizeObserver((entries) => {
      let changed = false;
      for (const { target } of entries) {
        const key = Number((target as HTMLElement).dataset.key);
        const height = target.getBoundingClientRect().height;
        if (height === 0 || heights.get(key) === height) continue;
        heights.set(key, height);
        changed = true;
      }
      if (changed) redraw();
    });
    observer.current = measured;
    return () => measured.disconnect();
  }, []);
  useLayoutEffect(() => {
    observer.current?.disconnect();
    for (const child of list.current?.children ?? []) observer.current?.observe(child);
  });
  const shown = at === undefined ? -1 : keys.indexOf(at);
  const held = useRef(true);
  useLayoutEffect(() => {
    held.current = true;
    const release = () => (held.current = false);
    for (const name of MOVES) addEventListener(name, release, { passive: true });
    return () => MOVES.forEach((name) => removeEventListener(name, release));
  }, [at]);
  useLayoutEffect(() => {
    // The rows before it may turn out higher than usual, so it is held in its place until somebody moves the page.
    if (shown < 0 || list.current === null || !held.current) return;
    scrollTo({ top: list.current.getBoundingClientRect().top + scrollY + offsetsOf(keys, heights, usual)[shown]! - 120 });
  });

  return (
    <ol ref={list} class="virtual" aria-label={name} style={{ height: `${offsets.at(-1)}px` }}>
      {keys.slice(first, end).map((key, index) => (
        <li key={key} data-key={key} aria-setsize={keys.length} aria-posinset={first + index + 1} style={{ top: `${offsets[first + index]}px` }}>
          {row(first + index)}
        </li>
      ))}
    </ol>
  );
}
