/** How often and after which pauses a request is repeated. */
export interface Retries {
  /** How often it is sent at most; 1 for never again. */
  attempts: number;
  /** Before the second one; it doubles, and is shortened at random by up to half, so that many clients do not return at once. */
  firstPauseS: number;
  /** The bound of a pause. A server that wants a longer one is not asked again: the error has its `retryAfterS`. */
  longestPauseS: number;
}

export const USUAL: Retries = { attempts: 4, firstPauseS: 0.5, longestPauseS: 30 };

/** What a POST to these paths does a second time, changes nothing that the first has done. */
const REPEATABLE_POST =
  /\/(?:tokens|attachments|memories|recall|ingest|cancel|check|resume|outcome|erase|reindex|verify|import|reseal|dismiss|replay|seed-memory)$/;
const UNAVAILABLE: ReadonlySet<number> = new Set([502, 503, 504]);

/** Return whether a request may be sent twice although the first may have been carried out. */
export function repeatable(method: string, path: string, hasKey: boolean): boolean {
  return hasKey || method !== "POST" || REPEATABLE_POST.test(path);
}

/**
 * Return the pause in seconds after an answer, undefined if it is the last word.
 *
 * What was refused with 429 was refused before anything was done, so it is repeated in any case.
 * @param attempt which one was answered, from 1
 * @param again whether the request is repeatable
 */
export function afterAnswer(
  retries: Retries,
  attempt: number,
  status: number,
  retryAfterS: number | undefined,
  again: boolean,
): number | undefined {
  return status === 429 || (UNAVAILABLE.has(status) && again) ? pauseS(retries, attempt, retryAfterS) : undefined;
}

/** Return the pause in seconds after a failure without an answer, undefined to give up. */
export function afterFailure(retries: Retries, attempt: number, again: boolean): number | undefined {
  return again ? pauseS(retries, attempt, undefined) : undefined;
}

function pauseS(retries: Retries, attempt: number, retryAfterS: number | undefined): number | undefined {
  if (attempt >= retries.attempts) return undefined;
  const growing = Math.min(retries.longestPauseS, retries.firstPauseS * 2 ** (attempt - 1));
  const pause = growing * (0.5 + Math.random() / 2);
  if (retryAfterS === undefined) return pause;
  return retryAfterS <= retries.longestPauseS ? Math.max(retryAfterS, pause) : undefined;
}

/** Return after so many seconds. Rejects with the signal's reason when it is aborted. */
export function sleep(seconds: number, signal?: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const aborted = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
