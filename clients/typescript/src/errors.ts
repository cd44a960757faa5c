/** The code when the server did not answer: the connection failed or broke, or the time was up. */
export const NO_ANSWER = "no_answer";
/** The code when an answer is not what Retain answers: something between the client and Retain sent it. */
export const UNEXPECTED_ANSWER = "unexpected_answer";

/** The code when an id cannot be one part of an address: nothing was sent. */
export const INVALID_ID = "invalid_id";
/** The code when what was given fits into no request, such as a key that no header can carry: nothing was sent. */
export const INVALID_REQUEST = "invalid_request";

export interface Circumstances {
  /** Why, stable; the server's docs/errors.md lists them. */
  code: string;
  /** Of the answer; absent without one. */
  status?: number | undefined;
  /** After how many seconds the server wants to be asked again, if it names a time. */
  retryAfterS?: number | undefined;
  /** As the server logs it. */
  requestId?: string | undefined;
  /** Further members of the problem. */
  details?: Readonly<Record<string, unknown>> | undefined;
  cause?: unknown;
}

/** A request that Retain refused, or that reached nobody. Decide by `code`. */
export class RetainError extends Error {
  override readonly name = "RetainError";
  readonly code: string;
  readonly status: number | undefined;
  readonly retryAfterS: number | undefined;
  readonly requestId: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(message: string, circumstances: Circumstances) {
    super(message, circumstances.cause === undefined ? undefined : { cause: circumstances.cause });
    this.code = circumstances.code;
    this.status = circumstances.status;
    this.retryAfterS = circumstances.retryAfterS;
    this.requestId = circumstances.requestId;
    this.details = circumstances.details ?? {};
  }
}

/** Return the error that a failure without an answer is. */
export function noAnswer(cause: unknown): RetainError {
  return new RetainError(cause instanceof Error ? cause.message : String(cause), { code: NO_ANSWER, cause });
}

/** Return the error that an answer is which is not as the document has it. It does not show the answer's values. */
export function notRetains(why: string, status?: number, cause?: unknown): RetainError {
  return new RetainError(`the answer is not one of Retain's: ${why}`, { code: UNEXPECTED_ANSWER, status, cause });
}

/** Return whether an answer has not what was asked for. Retain answers no page: one is of a login before it. */
export function isRefusal(response: Response): boolean {
  const isPage = response.headers.get("content-type")?.toLowerCase().startsWith("text/html") ?? false;
  return !(response.status >= 200 && response.status < 300) || isPage;
}

/** Return the error that a refusal is. */
export async function refusal(response: Response): Promise<RetainError> {
  const text = await response.text().catch(() => "");
  const known = {
    status: response.status,
    retryAfterS: retryAfterS(response.headers),
    requestId: response.headers.get("x-request-id") ?? undefined,
  };
  const problem = parsed(text);
  if (typeof problem?.["code"] !== "string" || typeof problem["detail"] !== "string") {
    const target = response.headers.get("location") ?? "";
    return new RetainError(`status ${response.status}: ${target || text.slice(0, 200)}`, { ...known, code: UNEXPECTED_ANSWER });
  }
  const { type: _type, title: _title, status: _status, detail, code, request_id, ...details } = problem;
  const requestId = known.requestId ?? (typeof request_id === "string" ? request_id : undefined);
  return new RetainError(`${detail}${problemsOf(details["problems"])}`, { ...known, requestId, code: String(code), details });
}

/** Return what is wrong in each place of a body or a query that does not fit, to follow the message. */
function problemsOf(found: unknown): string {
  const named = Array.isArray(found) ? found.filter((one) => typeof one === "string") : [];
  return named.length > 0 ? `: ${named.join("; ")}` : "";
}

/** Return the seconds that `retry-after` names, or until the date that it names; undefined where it is absent. */
export function retryAfterS(headers: Headers): number | undefined {
  const named = headers.get("retry-after") ?? "";
  if (/^[0-9]+$/.test(named)) return Number(named);
  const until = /^[A-Z]/.test(named) ? Date.parse(named) : Number.NaN;
  return Number.isNaN(until) ? undefined : Math.max(0, (until - Date.now()) / 1000);
}

/** Return the object that a text is in JSON. Throws a RetainError (code `unexpected_answer`) for another text. */
export function objectOf(text: string): Record<string, unknown> {
  const found = parsed(text);
  if (found === undefined) throw notRetains("it is not an object in JSON");
  return found;
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
