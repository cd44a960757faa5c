/** Where somebody is in the console: what the part of the address after `#` says. */
export interface Place {
  tenant: string;
  /** `runs`, `people`, `memory`, `recall`, `evaluations`, `datasets`, `agents` or `operations`. */
  view: string;
  /** Of what is shown alone: a run, a user, a memory, the run of an evaluation, a dataset, an agent. */
  id: string | undefined;
  /** Conditions of a list, or fields of a form. */
  query: Record<string, string>;
}

/** Read `#/tenant/view/id?name=value`. Without a tenant it is `default`, without a view the runs. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [tenant, view, id] = path.split("/").map(decoded);
  return {
    tenant: tenant || "default",
    view: view || "runs",
    id: id || undefined,
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

/** Return a part of an address as it was before it was encoded. One that somebody mistyped stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Return the address of a place. Empty conditions are left out. */
export function addressOf(tenant: string, view: string, id?: string, query: Record<string, string | undefined> = {}): string {
  const path = [tenant, view, ...(id === undefined ? [] : [id])].map(encodeURIComponent).join("/");
  const given = Object.entries(query).filter((entry): entry is [string, string] => Boolean(entry[1]));
  return `#/${path}${given.length === 0 ? "" : `?${new URLSearchParams(given)}`}`;
}
