import { Retain } from "retain-client";

/** What operators reach under `/admin/`, which is under `/v1/` for applications. An agent may be called `runs`. */
const OF_OPERATORS = /^\/v1\/(?:(tenants)(?=\/|$)|(agents\/[^/]+\/(?:runs|procedures|decisions)(?=\/(?!instances\/)|$)))/;

/** Return the address at which an operator finds what the document names. */
export function asOperator(path: string): string {
  return path.replace(OF_OPERATORS, (_, tenants, agents) => `/admin/${tenants ?? agents}`);
}

/** What the page says when whoever asks is no longer signed in: Access sends them to its login, or refuses. */
export const SESSION_ENDED = "session_ended";

/** Send a request as whoever is signed in. A login that is asked for is an answer with the code `session_ended`. */
export async function asked(url: URL | string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  // Access answers such a request with 401, and any other with its login on another site.
  // Source: https://developers.cloudflare.com/cloudflare-one/access-controls/policies/isolate-application/
  headers.set("x-requested-with", "XMLHttpRequest");
  const answer = await fetch(url, { ...options, headers, redirect: "manual" });
  if (answer.type !== "opaqueredirect" && answer.status !== 401) return answer;
  const problem = { code: SESSION_ENDED, detail: "You are not signed in, or no longer." };
  return new Response(JSON.stringify(problem), { status: 401, headers: { "content-type": "application/problem+json" } });
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
      return asked(url, { method, headers, signal, ...(body !== "" && { body }) });
    },
  });
}
