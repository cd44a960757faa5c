// The reference: what Retain's proxy does, as one would write it in JavaScript. It reads KV as READS says: each key by
// itself ("each"), all at once ("once"), or all at once every five seconds ("kept"). It hashes the API key, opens the credential and keeps it for a minute, checks the arguments and the target, calls
// the upstream with a timeout, reads its answer whole and limits its size. Instead of a JSON Schema library it has the
// few checks that the benchmark's tool needs.
const PREFIX = "/api/v1/tools/";
const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const tools = new Map();
const credentials = new Map();
const owners = new Map();
const kept = new Map();
let aesKey;

const bytes = (base64) => Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));

function problem(status, code, requestId) {
  const body = JSON.stringify({ type: "about:blank", status, code, request_id: requestId });
  return new Response(body, {
    status,
    headers: { "content-type": "application/problem+json", "x-request-id": requestId },
  });
}

function prepared(text) {
  let tool = tools.get(text);
  if (tool === undefined) {
    tool = JSON.parse(text);
    const url = new URL(tool.url);
    if (url.host !== tool.host) throw new Error("forbidden_upstream");
    tools.set(text, tool);
  }
  return tool;
}

// As Retain reads: a key that was valid before together with its tool, at once; with READS = "kept" every five seconds.
async function entries(env, hash, tool) {
  const owner = owners.get(hash);
  if (env.READS === "each" || owner === undefined) return undefined;
  const found = kept.get(`${hash} ${tool}`);
  if (env.READS === "kept" && found !== undefined && Date.now() < found.until) return found;
  const names = [`gateway_key:${hash}`, `gateway_tool:${owner}:${tool}`, `gateway_credential:${owner}:${tool}`];
  const values = await env.KV.get(names);
  const [key, config, credential] = names.map((name) => values.get(name) ?? null);
  const read = { key, tool: config, credential, until: Date.now() + 5000 };
  kept.set(`${hash} ${tool}`, read);
  return read;
}

function fits(schema, value) {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  for (const name of schema.required) if (!(name in value)) return false;
  for (const [name, item] of Object.entries(value)) {
    const rule = schema.properties[name];
    if (rule === undefined) return false;
    if (rule.type === "integer" ? !Number.isInteger(item) : typeof item !== rule.type) return false;
    if (rule.maxLength !== undefined && item.length > rule.maxLength) return false;
    if (rule.minimum !== undefined && item < rule.minimum) return false;
  }
  return true;
}

async function opened(env, place, sealed) {
  const name = `${place} ${sealed}`;
  const kept = credentials.get(name);
  if (kept !== undefined && Date.now() < kept.until) return kept.secret;
  aesKey ??= await crypto.subtle.importKey("raw", bytes(env.CREDENTIALS_KEY), "AES-GCM", false, ["decrypt"]);
  const data = bytes(JSON.parse(sealed).data);
  const algorithm = { name: "AES-GCM", iv: data.subarray(0, 12), additionalData: encoder.encode(place) };
  const secret = decoder.decode(await crypto.subtle.decrypt(algorithm, aesKey, data.subarray(12)));
  credentials.set(name, { secret, until: Date.now() + 60_000 });
  return secret;
}

export default {
  async fetch(request, env) {
    const path = new URL(request.url).pathname;
    if (path === "/constant") return new Response("ok");
    const requestId = crypto.randomUUID();
    const body = await request.text();
    const started = Date.now();
    const tool = path.slice(PREFIX.length);
    const authorization = request.headers.get("authorization") ?? "";
    if (!path.startsWith(PREFIX) || request.method !== "POST") return problem(404, "no_such_route", requestId);
    if (!authorization.startsWith("Bearer ")) return problem(401, "missing_api_key", requestId);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(authorization.slice(7))));
    const hash = Array.from(digest, (byte) => HEX[byte]).join("");
    const held = await entries(env, hash, tool);
    const text = held ? held.key : await env.KV.get(`gateway_key:${hash}`);
    if (text === null) return problem(401, "invalid_api_key", requestId);
    const grant = JSON.parse(text);
    if (grant.expires_at_ms !== undefined && grant.expires_at_ms <= Date.now()) {
      return problem(401, "invalid_api_key", requestId);
    }
    if (!grant.scopes.includes(tool) && !grant.scopes.includes("*")) return problem(403, "tool_not_allowed", requestId);
    const place = `gateway_credential:${grant.tenant_id}:${tool}`;
    const [configText, sealed] = held
      ? [held.tool, held.credential]
      : await Promise.all([env.KV.get(`gateway_tool:${grant.tenant_id}:${tool}`), env.KV.get(place)]);
    owners.set(hash, grant.tenant_id);
    const read = Date.now();
    if (configText === null) return problem(404, "no_such_tool", requestId);
    const config = prepared(configText);
    const values = JSON.parse(body);
    if (!fits(config.parameters, values)) return problem(400, "invalid_arguments", requestId);
    const secret = await opened(env, place, sealed);
    const sent = Date.now();
    const answer = await fetch(config.url, {
      method: config.method,
      headers: { "content-type": "application/json", accept: "application/json", authorization: `Bearer ${secret}` },
      body: JSON.stringify(values),
      redirect: "manual",
      signal: AbortSignal.timeout(config.timeout_ms),
    });
    const content = await answer.arrayBuffer();
    const done = Date.now();
    if (answer.status >= 300 && answer.status < 400) return problem(502, "upstream_redirected", requestId);
    if (content.byteLength > config.max_response_bytes) return problem(502, "response_too_large", requestId);
    const timing = `kv;dur=${read - started}, upstream;dur=${done - sent}, overhead;dur=${sent - read}`;
    return new Response(content, {
      status: answer.status,
      headers: {
        "content-type": answer.headers.get("content-type") ?? "application/octet-stream",
        "server-timing": timing,
        "x-request-id": requestId,
      },
    });
  },
};
