import { useEffect, useState } from "preact/hooks";
import type { Retain, Schemas } from "retain-client";

import type { Loaded } from "../loading.tsx";

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

/** Read a run, then its events page by page, then what is new, until it has ended. It is read again when `again` changes. */
export function useRun(retain: Retain, runId: string, again: number): Loaded<Followed> {
  const [loaded, setLoaded] = useState<Loaded<Followed>>(undefined);
  useEffect(() => {
    let current = true;
    const follow = async () => {
      const path = { tenant: retain.tenant, run_id: runId };
      let known: Schemas["RunEvent"][] = [];
      let cursor: string | undefined;
      let drawnMs = 0;
      while (current) {
        const run = (await retain.api.GET("/v1/agents/{tenant}/runs/{run_id}", { params: { path } })).data!;
        for (let more = true; more && current; ) {
          const query = { limit: PAGE, ...(cursor !== undefined && { cursor }) };
          const page = (await retain.api.GET("/v1/agents/{tenant}/runs/{run_id}/events", { params: { path, query } })).data!;
          const events = [...known, ...page.events];
          more = page.cursor !== null;
          if (current && (!more || Date.now() - drawnMs > REDRAW_MS)) {
            drawnMs = Date.now();
            setLoaded({ value: { run, events, whole: !more } });
          }
          // The last page is read again: it may have grown.
          if (page.cursor !== null) [known, cursor] = [events, page.cursor];
        }
        if (run.completed_at_ms !== null) return;
        await new Promise((resolve) => setTimeout(resolve, REFRESH_MS));
      }
    };
    follow().catch((error: unknown) => current && setLoaded({ error }));
    return () => {
      current = false;
    };
  }, [runId, again]);
  return loaded;
}
