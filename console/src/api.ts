import { Retain } from "retain-client";

/** What operators reach under `/admin/`, which is under `/v1/` for applications. */
const OF_OPERATORS = /^\/v1\/(?:(tenants)(?=\/|$)|(agents\/[^/]+\/(?:runs|procedures|decisions)(?=\/|$)))/;

/** Return the address at which an operator finds what the document names. */
export function asOperator(path: string): string {
  return path.replace(OF_OPERATORS, (_, tenants, agents) => `/admin/${tenants ?? agents}`);
}

/** Return a client of a tenant, for who is signed in at this deployment. */
export function clientOf(tenant: string): Retain {
  return new Retain({
    url: location.origin,
    tenant,
    fetch: async (request) => {
      const url = new URL(request.url);
      url.pathname = asOperator(url.pathname);
      const { method, headers, signal } = request;
      // As text: browsers stream a body that is passed on over HTTP/2 alone.
      const body = await request.text();
      return fetch(url, { method, headers, signal, ...(body !== "" && { body }) });
    },
  });
}
