import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { operations } from "retain-client";

/** The name of an operation of the document. */
export type Operation = keyof operations;

/** The operations that the caller may do; undefined until they are known. */
export const Allowed = createContext<ReadonlySet<string> | undefined>(undefined);

/** Return a function that says whether the caller may do an operation here. Until that is known, nothing may be done. */
export function useMay(): (operation: Operation) => boolean {
  const allowed = useContext(Allowed);
  return (operation) => allowed?.has(operation) === true;
}
