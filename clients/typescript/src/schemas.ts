import type { Client } from "openapi-fetch";

import { notRetains } from "./errors.js";
import type { components, operations, paths } from "./schema.js";

/** The types of bodies and answers, by their names in the document. */
export type Schemas = components["schemas"];
/** Every operation of the document, typed. */
export type Api = Client<paths, "application/json">;
/** The parameters of a list, without its cursor. */
export type Query<Name extends keyof operations> = Omit<
  NonNullable<operations[Name]["parameters"]["query"]>,
  "cursor"
>;
/** A run that has ended, or one that is open. */
export type Run = Schemas["RunResult"] | Schemas["RunStanding"];

/** Return whether a run has ended. */
export function hasEnded(run: Run): run is Schemas["RunResult"] {
  return "output" in run;
}

/** Return the client, which then throws a RetainError (code `unexpected_answer`) for an answer that is not JSON. */
export function reading(api: Api): Api {
  for (const method of ["GET", "PUT", "POST", "DELETE", "PATCH", "request"] as const) {
    const call = api[method] as (...given: unknown[]) => Promise<unknown>;
    const read = (...given: unknown[]): Promise<unknown> =>
      call(...given).catch((error: unknown) => {
        throw error instanceof SyntaxError ? notRetains(error.message, undefined, error) : error;
      });
    Object.assign(api, { [method]: read });
  }
  return api;
}

/** Return what an operation answered. Throws a RetainError (code `unexpected_answer`) when it is not an object. */
export function answered<Answer>(found: { data?: Answer; response: Response }): NonNullable<Answer> {
  if (typeof found.data === "object" && found.data !== null) return found.data;
  throw notRetains("it is not an object", found.response.status);
}

/** Check that a deletion was answered. Throws a RetainError (code `unexpected_answer`) for what answers something else. */
export function deleted({ response }: { response: Response }): void {
  if (response.status !== 204) throw notRetains("it does not say that it is deleted", response.status);
}
