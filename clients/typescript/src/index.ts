/** A client of Retain, for browsers, Node and Workers. */

import createClient from "openapi-fetch";

import { Agents } from "./agents.js";
import { Attachments } from "./attachments.js";
import { Conversations } from "./conversations.js";
import { checkedKey, checkedUrl } from "./destination.js";
import { Memories } from "./memories.js";
import { type Retries, USUAL } from "./retries.js";
import { Runs } from "./runs.js";
import { type Api, reading } from "./schemas.js";
import type { paths } from "./schema.js";
import { pathOf, retrying, type Send } from "./transport.js";
import { Tokens, Users } from "./users.js";
import { Schedules } from "./schedules.js";
import { Webhooks } from "./webhooks.js";

export type { UploadOptions } from "./attachments.js";
export { RetainError } from "./errors.js";
export { Pages } from "./pages.js";
export type { Retries } from "./retries.js";
export { RunStream } from "./run-stream.js";
export type { StartOptions } from "./runs.js";
export { type Api, hasEnded, type Run, type Schemas } from "./schemas.js";
export type { operations, paths } from "./schema.js";
export type { EventData, StreamedEvent } from "./server-events.js";
export type { Send } from "./transport.js";

export interface RetainOptions {
  /** Of the deployment. */
  url: string;
  /** A key of the application; in a browser, the token of a user. Absent for who is signed in at the deployment. */
  key?: string;
  tenant: string;
  /** How long the server may be silent before a request counts as failed: 60 unless given. */
  timeoutS?: number;
  retries?: Partial<Retries>;
  /** What sends requests; the global `fetch` unless given. A Worker passes the `fetch` of a service binding. */
  fetch?: Send;
}

/**
 * One tenant of a deployment, reached with a key of an application or a token of its user.
 *
 * Its constructor throws a TypeError for what cannot be an address or a key.
 */
export class Retain {
  readonly tenant: string;
  /** Every operation of the document, with its types. It retries and throws as the others do. */
  readonly api: Api;
  readonly runs: Runs;
  readonly attachments: Attachments;
  readonly memories: Memories;
  readonly users: Users;
  readonly conversations: Conversations;
  readonly agents: Agents;
  readonly tokens: Tokens;
  readonly schedules: Schedules;
  readonly webhooks: Webhooks;

  constructor(options: RetainOptions) {
    const { url, key, tenant, timeoutS = 60 } = options;
    const retries = {
      attempts: options.retries?.attempts ?? USUAL.attempts,
      firstPauseS: options.retries?.firstPauseS ?? USUAL.firstPauseS,
      longestPauseS: options.retries?.longestPauseS ?? USUAL.longestPauseS,
    };
    const send = options.fetch ?? ((request: Request) => globalThis.fetch(request));
    this.tenant = tenant;
    const api = createClient<paths, "application/json">({
      baseUrl: checkedUrl(url),
      headers: key === undefined ? {} : { authorization: `Bearer ${checkedKey(key)}` },
      pathSerializer: pathOf,
      redirect: "manual",
      fetch: retrying(send, retries, timeoutS),
    });
    this.api = reading(api);
    this.runs = new Runs(this.api, tenant, retries, timeoutS);
    this.attachments = new Attachments(this.api, tenant);
    this.memories = new Memories(this.api, tenant);
    this.users = new Users(this.api, tenant);
    this.conversations = new Conversations(this.api, tenant);
    this.agents = new Agents(this.api, tenant);
    this.tokens = new Tokens(this.api, tenant);
    this.schedules = new Schedules(this.api, tenant);
    this.webhooks = new Webhooks(this.api, tenant);
  }
}
