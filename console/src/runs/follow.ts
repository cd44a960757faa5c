import { useEffect, useRef, useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import { afterFailure, type Loaded, pause } from "../loading.tsx";

const REFRESH_MS = 2_000;
const PAGE = 200;
/** Folding thousands of events takes longer than reading a page of them. */
const REDRAW_MS = 500;

/** A run with the events that are known so far, in their order. whole: whether there are no others yet. */
export interface Followed {
  run: Schemas["InspectedRun"];
  events: Schemas["RunEvent"][];
  whole: boolean;
}

/** What was read of a run, which stays when it is read again: its events only become more. */
interface Kept {
  runId: string;
  shown: Loaded<Followed>;
  known: Schemas["RunEvent"][];
  cursor: string | undefined;
}

/** Read a run, then its events page by page, then what is new, until it has ended. It is read again when `again` changes. */
export function useRun(retain: Retain, runId: string, again: number): Loaded<Followed> {
  const [loaded, setLoaded] = useState<Loaded<Followed>>(undefined);
  const kept = useRef<Kept | undefined>(undefined);
  useEffect(() => {
    let current = true;
    const path = { tenant: retain.tenant, run_id: runId };
    if (kept.current?.runId !== runId) kept.current = { runId, shown: undefined, known: [], cursor: undefined };
    const read = kept.current;
    let drawnMs = 0;
    const show = (found: Loaded<Followed>) => current && setLoaded((read.shown = found));
    /** Read the run and the events that are new; return whether it has ended. */
    const more = async (): Promise<boolean> => {
      const run = (await retain.api.GET("/v1/agents/{tenant}/runs/{run_id}", { params: { path } })).data!;
      for (let whole = false; !whole && current; ) {
        const query = { limit: PAGE, ...(read.cursor !== undefined && { cursor: read.cursor }) };
        const page = (await retain.api.GET("/v1/agents/{tenant}/runs/{run_id}/events", { params: { path, query } })).data!;
        if (!current) break;
        const events = [...read.known, ...page.events];
        whole = page.cursor === null;
        if (whole || Date.now() - drawnMs > REDRAW_MS) {
          drawnMs = Date.now();
          show({ value: { run, events, whole } });
        }
        // The last page is read again: it may have grown.
        if (page.cursor !== null) [read.known, read.cursor] = [events, page.cursor];
      }
      return run.completed_at_ms !== null;
    };
    const follow = async () => {
      for (let ended = false; current && !ended; ) {
        ended = await more().catch((error: unknown) => {
          show(afterFailure(read.shown, error));
          // What was never seen is not there; what was seen is asked for again.
          return read.shown !== undefined && "error" in read.shown;
        });
        if (!ended) await pause(REFRESH_MS);
      }
    };
    void follow();
    return () => {
      current = false;
    };
  }, [runId, again]);
  return loaded;
}
