import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import type { Place } from "./place.ts";

/** How long a place that somebody went back to may take until it is as high as it was. */
const RESTORED_MS = 3_000;

/** Return the page's title at a place: tabs, bookmarks and screen readers name it. */
export function titleOf({ tenant, view, id }: Place, views: Record<string, string>): string {
  return [id, views[view] ?? "Runs", tenant, "Retain"].filter(Boolean).join(" · ");
}

/** Name the page, and when somebody goes to another place, begin at its top; going back, where they were. */
export function useTitle(place: Place, views: Record<string, string>): void {
  const first = useRef(true);
  const here = `${place.tenant} ${place.view} ${place.id ?? ""}`;
  useEffect(() => {
    document.title = titleOf(place, views);
  });
  useLayoutEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    document.querySelector("main")?.focus({ preventScroll: true });
    const top = (history.state as { top?: number } | null)?.top ?? 0;
    if (top === 0) scrollTo({ top: 0 });
    else void restored(top);
  }, [here]);
  useEffect(() => {
    history.scrollRestoration = "manual";
    let timer: ReturnType<typeof setTimeout> | undefined;
    const scrolled = () => {
      clearTimeout(timer);
      timer = setTimeout(() => history.replaceState({ top: scrollY }, ""), 100);
    };
    // What is followed is left where it is; what comes then has a state of its own.
    const left = () => clearTimeout(timer);
    const followed = () => history.replaceState({ top: scrollY }, "");
    addEventListener("scroll", scrolled, { passive: true });
    addEventListener("click", followed, { capture: true });
    addEventListener("popstate", left);
    return () => {
      removeEventListener("scroll", scrolled);
      removeEventListener("click", followed, { capture: true });
      removeEventListener("popstate", left);
    };
  }, []);
}

/** Scroll as far down as somebody was, as soon as the page is so high again, unless they scroll themselves. */
async function restored(top: number): Promise<void> {
  let moved = false;
  const stop = () => (moved = true);
  addEventListener("wheel", stop, { once: true, passive: true });
  addEventListener("keydown", stop, { once: true });
  for (const untilMs = Date.now() + RESTORED_MS; !moved && Date.now() < untilMs; ) {
    scrollTo({ top });
    if (Math.abs(scrollY - top) < 2) break;
    await new Promise(requestAnimationFrame);
  }
  removeEventListener("wheel", stop);
  removeEventListener("keydown", stop);
}
