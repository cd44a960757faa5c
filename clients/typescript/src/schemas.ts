import type { Client } from "openapi-fetch";

import { RetainError, UNEXPECTED_ANSWER } from "./errors.js";
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

/** Return what an operation answered. Throws a RetainError (code `unexpected_answer`) when it answered nothing. */
export function answered<Answer>(found: { data?: Answer; response: Response }): NonNullable<Answer> {
  if (found.data !== undefined && found.data !== null) return found.data;
  const status = found.response.status;
  throw new RetainError(`the answer with status ${status} is empty`, { code: UNEXPECTED_ANSWER, status });
}
