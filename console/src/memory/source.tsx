import { addressOf } from "../place.ts";

/** Where a memory, or a change of it, comes from. step: the turn of the run in which it was written. */
export interface Origin {
  origin?: string;
  by?: string;
  run_id?: string;
  step?: number;
  message?: string;
  record_id?: string;
}

/** Return the address of the moment of a run at which something was written: the call of the tool, or what was asked. */
export function momentAt(tenant: string, source: Origin, id: string): string {
  const { origin, run_id = "", step } = source;
  const where = origin === "extraction" ? { at: "asked" } : { turn: step === undefined ? undefined : String(step), wrote: id };
  return addressOf(tenant, "runs", run_id, where);
}

/** What wrote a memory or changed it, with links to the step, the message or the memory. id: of the memory. */
export function Source({ tenant, source, id }: { tenant: string; source: Origin; id: string }) {
  const { origin, by, run_id, step, message, record_id } = source;
  const of = record_id === undefined ? undefined : addressOf(tenant, "memory", record_id);
  return (
    <>
      {[origin, by].filter(Boolean).join(" ")}
      {run_id !== undefined && (
        <>, <a href={momentAt(tenant, source, id)}>{origin === "extraction" ? "what was asked in the run" : step === undefined ? "the run" : `turn ${step} of the run`} {run_id}</a></>
      )}
      {of !== undefined && <>, <a href={of}>{message === undefined ? `the memory ${record_id}` : `the message ${message}`}</a></>}
      {of === undefined && message !== undefined && <>, the message {message}</>}
    </>
  );
}
