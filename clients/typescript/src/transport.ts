import { defaultPathSerializer } from "openapi-fetch";

import { INVALID_ID, INVALID_REQUEST, isRefusal, noAnswer, refusal, RetainError, retryAfterS } from "./errors.js";
import { piecesOf } from "./pieces.js";
import { afterAnswer, afterFailure, repeatable, type Retries, sleep } from "./retries.js";
import { isStream } from "./server-events.js";

/** What sends a request. */
export type Send = (request: Request) => Promise<Response>;

/** A surrogate alone, which no address can name. */
const HALF_OF_A_PAIR = /\p{Surrogate}/u;

/** Return a path with its ids. Throws a RetainError (code `invalid_id`) for one that leads to another path. */
export function pathOf(path: string, ids: Record<string, unknown>): string {
  for (const id of Object.values(ids)) {
    if (typeof id === "string" && !["", ".", ".."].includes(id) && !HALF_OF_A_PAIR.test(id)) continue;
    throw new RetainError(`${JSON.stringify(id)} is not an id that an address can name; nothing was sent`, { code: INVALID_ID });
  }
  return defaultPathSerializer(path, ids);
}

/** Return the header of an idempotency key, a new one if absent. Throws a RetainError (code `invalid_request`) for what none can be. */
export function keyed(key: string | undefined): { "idempotency-key": string } {
  if (key !== undefined && !/^[ -~]*$/.test(key)) {
    throw new RetainError("an idempotency key is of printable ASCII; nothing was sent", { code: INVALID_REQUEST });
  }
  return { "idempotency-key": key ?? crypto.randomUUID() };
}

/**
 * Return a `fetch` that repeats what failed or was refused for now, and throws a RetainError for what was refused.
 *
 * What the caller aborts ends with the signal's own reason.
 * @param timeoutS how long the server may be silent
 */
export function retrying(send: Send, retries: Retries, timeoutS: number): Send {
  return async (request) => {
    const path = new URL(request.url).pathname;
    const again = repeatable(request.method, path, request.headers.has("idempotency-key"));
    for (let attempt = 1; ; attempt++) {
      let pause: number | undefined;
      try {
        const response = await within(request.clone(), send, timeoutS);
        if (!isRefusal(response)) return response;
        pause = afterAnswer(retries, attempt, response.status, retryAfterS(response.headers), again);
        if (pause === undefined) throw await refusal(response);
        await response.body?.cancel();
      } catch (error) {
        if (error instanceof RetainError) throw error;
        request.signal.throwIfAborted();
        pause = afterFailure(retries, attempt, again);
        if (pause === undefined) throw noAnswer(error);
      }
      await sleep(pause, request.signal);
    }
  };
}

async function within(request: Request, send: Send, timeoutS: number): Promise<Response> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(new Error(`no answer within ${timeoutS} s`)), timeoutS * 1000);
  try {
    const response = await send(new Request(request, { signal: AbortSignal.any([request.signal, late.signal]) }));
    clearTimeout(timer);
    return await arrived(response, timeoutS);
  } finally {
    clearTimeout(timer);
  }
}

/** Return an answer once its body has arrived; a stream of events at once. */
async function arrived(response: Response, timeoutS: number): Promise<Response> {
  // A browser gives a 204 an empty body, with which no other can be made.
  if (response.body === null || response.status === 204 || isStream(response)) return response;
  const pieces: BlobPart[] = [];
  for await (const piece of piecesOf(response.body, timeoutS)) pieces.push(piece as BlobPart);
  return new Response(new Blob(pieces), response);
}
