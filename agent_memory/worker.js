/**
 * The binding of Cloudflare Agent Memory, answered by Retain over its HTTP interface.
 *
 * Bound as a service with the entrypoint `AgentMemory`, it takes the binding's calls and gives its answers.
 * Source: https://developers.cloudflare.com/agent-memory/api/workers-api/
 */

import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";

const MAX_LISTED = 500;

/** A namespace. Its name is the property `namespace` of the service binding, else the variable NAMESPACE. */
export class AgentMemory extends WorkerEntrypoint {
  /** Return a profile, which exists once something is stored in it. */
  getProfile(name) {
    return new Profile(this.#namespace(), name);
  }

  /** Delete a profile with all of its memories and messages. */
  async deleteProfile(name) {
    await this.#namespace().ask("DELETE", `/profiles/${segment(name)}`);
  }

  #namespace() {
    return new Namespace(this.env, this.ctx.props?.namespace || this.env.NAMESPACE);
  }
}

/** Answers HTTP with how to use this Worker: wrangler wants a default entrypoint. */
export default {
  fetch() {
    return new Response("Bind this Worker as a service with the entrypoint AgentMemory: see docs/agent-memory.md\n", { status: 404 });
  },
};

/** A profile, as its caller holds it. */
class Profile extends RpcTarget {
  #namespace;
  #path;

  constructor(namespace, name) {
    super();
    this.#namespace = namespace;
    this.#path = `/profiles/${segment(name)}`;
  }

  /** Return a memory. Throws if there is none. */
  async get(id) {
    return memoryOf(await this.#ask("GET", `/memories/${segment(id)}`));
  }

  /** Delete a memory and return it. Throws if there is none. */
  async delete(id) {
    return memoryOf(await this.#ask("DELETE", `/memories/${segment(id)}`));
  }

  /** Store one memory and return it. */
  async remember({ content, sessionId = null }) {
    return memoryOf(await this.#ask("POST", "/remember", { content, sessionId }));
  }

  /** Store a conversation, and extract memories from it. */
  async ingest(messages, { sessionId = null } = {}) {
    const sent = [...messages].map(({ role, content, timestamp }) => ({ role, content, timestamp: dateOf(timestamp) }));
    await this.#ask("POST", "/ingest", { messages: sent, sessionId });
  }

  /** Return a summary as Markdown. */
  async getSummary({ sessionId = null } = {}) {
    return this.#ask("POST", "/summary", { sessionId });
  }

  /** Return candidates for a query, and an answer: "" where no language model is configured. */
  async recall(query, { thinkingLevel, responseLength, referenceDate } = {}) {
    const asked = { query, thinkingLevel, responseLength, referenceDate: dateOf(referenceDate) };
    const { count, candidates, answer = "" } = await this.#ask("POST", "/recall", asked);
    return { count, answer, candidates };
  }

  /** Return a page of memories without their content. */
  async list({ limit = 20, cursor, sessionId, type } = {}) {
    if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LISTED) throw new RangeError(`limit must be 1 to ${MAX_LISTED}`);
    const query = new URLSearchParams({ per_page: String(limit) });
    for (const [name, value] of Object.entries({ cursor, session_id: sessionId, type })) {
      if (value !== undefined && value !== null) query.set(name, value);
    }
    const page = await this.#namespace.page("GET", `${this.#path}/memories?${query}`);
    const following = page.result_info.cursor;
    return { memories: page.result.map(memoryOf), ...(following ? { cursor: following } : {}) };
  }

  /** Delete what came from a session. Idempotent. */
  async deleteSession(id) {
    await this.#ask("DELETE", `/sessions/${segment(id)}`);
  }

  #ask(method, path, body) {
    return this.#namespace.ask(method, `${this.#path}${path}`, body);
  }
}

/** A namespace over HTTP. */
class Namespace {
  #retain;
  #base;
  #headers;

  constructor({ RETAIN, ACCOUNT, RETAIN_KEY }, name) {
    if (!name) throw new Error("the service binding needs props = { namespace = \"…\" }");
    this.#retain = RETAIN;
    this.#base = `http://localhost/client/v4/accounts/${segment(ACCOUNT)}/agent-memory/namespaces/${segment(name)}`;
    this.#headers = RETAIN_KEY ? { authorization: `Bearer ${RETAIN_KEY}` } : {};
  }

  /** Return the result of a request. Throws an error with the message of the first one in the envelope. */
  async ask(method, path, body) {
    return (await this.page(method, path, body)).result;
  }

  /** Return the envelope of a request. Throws as `ask`. */
  async page(method, path, body) {
    const answer = await this.#retain.fetch(`${this.#base}${path}`, {
      method,
      headers: { ...this.#headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const envelope = await answer.json();
    if (!envelope.success) throw new Error(envelope.errors[0].message);
    return envelope;
  }
}

/** Return a memory with dates instead of texts. */
function memoryOf(shown) {
  return { ...shown, createdAt: new Date(shown.createdAt), updatedAt: new Date(shown.updatedAt) };
}

/** Return a date as text; undefined if there is none. */
function dateOf(value) {
  return value instanceof Date ? value.toISOString() : (value ?? undefined);
}

/** Return a name or an id as a part of a path. Throws a TypeError for what would name another path, or `undefined` as a user. */
function segment(text) {
  if (typeof text !== "string" || /^\.{0,2}$/.test(text)) throw new TypeError("a name or an id must be a text, and not empty, . or ..");
  return encodeURIComponent(text);
}
