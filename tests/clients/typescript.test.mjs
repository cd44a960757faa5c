// What the TypeScript client decides and reads, without a server. SENT: the names of the headers that a page of another origin
// may send, separated by commas.

import assert from "node:assert/strict";
import test from "node:test";

import { all, client, load, problem, QUICK, streamed } from "./canned.mjs";

const { Retain, RetainError } = await load("index");
const { eventsOf } = await load("server-events");

test("a run whose answer is lost is sent again with the same key and body", async () => {
  const answer = { run_id: "1", instance_id: "desk", status: "running" };
  const { retain, sent } = client(new TypeError("fetch failed"), problem(503, "d1_unavailable"), Response.json(answer));
  assert.deepEqual(await retain.runs.start("sdr", { input: "hello" }), answer);
  assert.equal(new Set(sent.map((one) => one.headers.get("idempotency-key"))).size, 1);
  assert.deepEqual(sent.map((one) => one.body), Array(3).fill('{"input":"hello"}'));
  assert.equal(sent[0].headers.get("authorization"), "Bearer k");
});

test("whoever waits for a run learns that its delegate waits for an approval, if they reach it", async () => {
  const waiting = (awaited) => Response.json({ run_id: "1", instance_id: "desk", status: "waiting", waiting_for: awaited });
  const delegate = { kind: "delegate", call: "1.0", run_id: "2", agent_type: "clerk", instance_id: "1.clerk" };
  const asked = client(waiting(delegate), waiting({ kind: "approval", call: "1.0", tool: "pay", arguments: {}, expires_at_ms: 1 }));
  assert.equal((await asked.retain.runs.wait("boss", "desk", "1", { pollS: 0.001 })).waiting_for.run_id, "2");
  assert.ok(asked.sent[1].url.endsWith("/v1/agents/acme/clerk/instances/1.clerk/runs/2"));
  const ended = Response.json({ run_id: "1", instance_id: "desk", status: "completed", output: "done" });
  const other = client(waiting(delegate), problem(403, "token_not_allowed"), ended);
  assert.equal((await other.retain.runs.wait("boss", "desk", "1", { pollS: 0.001 })).output, "done");
});

test("a POST without a key whose answer is lost is not sent again", async () => {
  const { retain, sent } = client(new TypeError("fetch failed"));
  const body = { name: "shop", scopes: ["runs"] };
  const refused = retain.api.POST("/v1/tenants/{tenant}/keys", { params: { path: { tenant: "acme" } }, body });
  await assert.rejects(refused, (error) => error instanceof RetainError && error.code === "no_answer");
  assert.equal(sent.length, 1);
});

test("the message of a refusal names each place that does not fit", async () => {
  const problems = ["a: b", "c: d", 7];
  const body = { code: "invalid_body", detail: "the body does not fit", request_id: "r1", problems };
  const { retain } = client(Response.json(body, { status: 400 }));
  await assert.rejects(retain.memories.get("x"), (error) => {
    assert.equal(error.message, "the body does not fit: a: b; c: d");
    assert.deepEqual(error.details, { problems });
    return true;
  });
});

test("too many requests are sent again after the server's pause, and not if it is long", async () => {
  const { retain, sent } = client(problem(429, "rate_limited", { "retry-after": "0" }), problem(429, "run_quota", { "retry-after": "60" }));
  await assert.rejects(retain.memories.get("x"), (error) => {
    assert.deepEqual([error.code, error.status, error.retryAfterS, error.requestId], ["run_quota", 429, 60, "r1"]);
    assert.deepEqual(error.details, { limit: 7 });
    return true;
  });
  assert.equal(sent.length, 2);
});

test("the attempts are counted", async () => {
  const { retain, sent } = client(...Array.from({ length: 5 }, () => problem(503, "contended")));
  await assert.rejects(retain.memories.recall({ query: "tea" }), { code: "contended" });
  assert.equal(sent.length, QUICK.attempts);
});

test("what cannot be one part of an address is refused before anything is sent", async () => {
  for (const part of ["", ".", "..", undefined, null, {}]) {
    const { retain, sent } = client();
    const calls = [
      retain.users.forget(part),
      retain.memories.delete(part),
      retain.attachments.download(part),
      retain.runs.start(part, { input: "hi" }),
      retain.runs.stream(part, { input: "hi" })[Symbol.asyncIterator]().next(),
    ];
    for (const call of calls) await assert.rejects(call, { name: "RetainError", code: "invalid_id", status: undefined });
    assert.deepEqual(sent, []);
  }
});

test("what fits into no request is refused before it is sent", async () => {
  const { retain, sent } = client();
  await assert.rejects(retain.memories.get("\ud800"), { name: "RetainError", code: "invalid_id" });
  const options = { idempotencyKey: "clé 茶" };
  const timed = { agent_type: "sdr", input: "hello", cron: "0 9 * * *" };
  for (const call of [
    retain.runs.start("sdr", { input: "hello" }, options),
    retain.schedules.create(timed, options),
    (async () => {
      for await (const _ of retain.runs.stream("sdr", { input: "hello" }, options));
    })(),
  ]) {
    await assert.rejects(call, { name: "RetainError", code: "invalid_request", status: undefined });
  }
  assert.deepEqual(sent, []);
});

test("the pause that the server asks for may be a date", async () => {
  const at = (seconds) => new Date(Date.now() + seconds * 1000).toUTCString();
  const past = client(problem(429, "rate_limited", { "retry-after": at(-5) }), problem(404, "no_such_record"));
  await assert.rejects(past.retain.memories.get("x"), { code: "no_such_record" });
  const later = client(problem(429, "rate_limited", { "retry-after": at(60) }));
  await assert.rejects(later.retain.memories.get("x"), (error) => error.retryAfterS > 50 && error.retryAfterS <= 60);
});

test("what Retain does not answer is an unexpected answer", async () => {
  const { retain } = client(new Response("<html>", { status: 403 }));
  await assert.rejects(retain.memories.get("x"), { code: "unexpected_answer", status: 403 });
});

test("an aborted call ends with the reason of its signal and is not repeated", async () => {
  const { retain, sent } = client(new TypeError("fetch failed"));
  const signal = AbortSignal.abort(new Error("the page was left"));
  await assert.rejects(retain.runs.start("sdr", { input: "hello" }, { signal }), { message: "the page was left" });
  assert.ok(sent.length <= 1);
});

test("a server that is silent fails after the time that the client waits", async () => {
  const silent = (request) =>
    new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
  const retain = new Retain({
    url: "https://retain.example", key: "k", tenant: "acme", timeoutS: 0.01, retries: QUICK, fetch: silent,
  });
  await assert.rejects(retain.memories.get("x"), { code: "no_answer" });
});

test("a list reads its pages as they are needed", async () => {
  const { retain, sent } = client(
    Response.json({ runs: [{ run_id: "2" }, { run_id: "1" }], cursor: "c" }),
    Response.json({ runs: [{ run_id: "0" }], cursor: null }),
  );
  const found = [];
  for await (const run of retain.runs.list({ limit: 2 })) {
    found.push(run.run_id);
    assert.equal(sent.length, found.length > 2 ? 2 : 1);
  }
  assert.deepEqual(found, ["2", "1", "0"]);
  assert.deepEqual(sent.map((one) => new URL(one.url).search), ["?limit=2", "?limit=2&cursor=c"]);
});

test("events are read whatever the pieces in which they arrive", async () => {
  const text = ': still here\n\nid: 0\r\nevent: a\r\ndata: {"t":\r\ndata: "é"}\r\n\r\nevent: b\ndata: {}\n\ndata: {"cut":';
  const bytes = new TextEncoder().encode(text);
  for (let size = 1; size <= bytes.length; size++) {
    const pieces = (async function* () {
      for (let from = 0; from < bytes.length; from += size) yield bytes.slice(from, from + size);
    })();
    const events = [];
    for await (const event of eventsOf(pieces)) if (event !== undefined) events.push(event);
    assert.deepEqual(events, [{ name: "a", data: { t: "é" }, id: "0" }, { name: "b", data: {} }], `pieces of ${size}`);
  }
});

test("a stream that ends early is continued after its last event, until the run has ended", async () => {
  const started = 'id: 0\nevent: run.started\ndata: {"run_id": "1", "instance_id": "desk"}\n\n';
  const { retain, sent } = client(
    streamed(started, "event: tool.ca"),
    new TypeError("network error"),
    streamed('id: 3\nevent: tool.called\ndata: {}\n\n'),
    streamed(': still here\n\n'),
    streamed('id: 4\nevent: run.completed\ndata: {"run_id": "1", "output": "done"}\n\n'),
  );
  const events = retain.runs.stream("sdr", { input: "hello" });
  const names = [];
  for await (const event of events) names.push(event.name);
  assert.deepEqual(names, ["run.started", "tool.called", "run.completed"]);
  assert.equal(events.result.output, "done");
  assert.deepEqual(sent.map((one) => [one.method, one.headers.get("last-event-id")]), [
    ["POST", null], ["GET", "0"], ["GET", "0"], ["GET", "3"], ["GET", "3"],
  ]);
  const headers = new Set(sent.flatMap((one) => [...one.headers.keys()]));
  assert.deepEqual([...headers].filter((name) => !process.env.SENT.split(",").includes(name)), []);
  assert.ok(headers.has("idempotency-key") && headers.has("last-event-id"));
  assert.ok(sent[1].url.endsWith("/v1/agents/acme/sdr/instances/desk/runs/1/events"));
});

test("a stream that only breaks is given up", async () => {
  for (const answer of ["", "retry: 1000\n\n", "data: {}"]) {
    const { retain, sent } = client(...Array.from({ length: 9 }, () => streamed(answer)));
    await assert.rejects(async () => {
      for await (const _ of retain.runs.follow("sdr", "desk", "1"));
    }, { code: "no_answer" });
    assert.equal(sent.length, QUICK.attempts);
  }
});

const cut = (begun, type = "application/json", status = 200) =>
  new Response(
    new ReadableStream({
      pull(controller) {
        if (begun) controller.enqueue(new TextEncoder().encode(begun));
        else controller.error(new TypeError("terminated"));
        begun = "";
      },
    }),
    { status, headers: { "content-type": type } },
  );
const page = () => new Response("<title>Sign in</title>", { headers: { "content-type": "text/html; charset=utf-8" } });

test("a run whose answer is cut in its body is sent again with the same key", async () => {
  const answer = { run_id: "1", instance_id: "desk", status: "running" };
  const { retain, sent } = client(cut('{"run_id"'), cut('{"code"', "application/problem+json", 503), Response.json(answer));
  assert.deepEqual(await retain.runs.start("sdr", { input: "hello" }), answer);
  assert.equal(new Set(sent.map((one) => one.headers.get("idempotency-key"))).size, 1);
});

test("answers that are only cut are one error, and a POST without a key is not repeated", async () => {
  const { retain, sent } = client(cut("{"), cut("{"), cut("{"), cut("{"));
  await assert.rejects(retain.memories.get("x"), { name: "RetainError", code: "no_answer" });
  assert.equal(sent.length, QUICK.attempts);
  await assert.rejects(retain.webhooks.rotate("x"), { name: "RetainError", code: "no_answer" });
  assert.equal(sent.length, QUICK.attempts + 1);
});

test("a body that stalls fails after the time that the client waits", async () => {
  const stalled = () => new Response(new ReadableStream({ start: (begun) => begun.enqueue(new Uint8Array([123])) }));
  const options = { url: "https://retain.example", tenant: "acme", timeoutS: 0.01, retries: QUICK };
  const retain = new Retain({ ...options, fetch: async () => stalled() });
  await assert.rejects(retain.memories.get("x"), { name: "RetainError", code: "no_answer" });
});

const CALLS = {
  "a deletion": (retain) => retain.memories.delete("x"),
  "a file": (retain) => retain.attachments.download("x"),
  "one thing": (retain) => retain.memories.get("x"),
  "a list": (retain) => all(retain.users.list()),
  "an export": (retain) => all(retain.users.export("x")),
  "an erasure": (retain) => retain.users.forget("x"),
  "a stream": (retain) => all(retain.runs.stream("sdr", { input: "hi" })),
  "a stream of a run": (retain) => all(retain.runs.follow("sdr", "desk", "1")),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`a page instead of ${name} is one error that shows it`, async () => {
    const { retain, sent } = client(page());
    await assert.rejects(call(retain), { name: "RetainError", code: "unexpected_answer", status: 200, message: /Sign in/ });
    assert.equal(sent.length, 1);
  });
  const others = { "not JSON": () => new Response("ok"), "other JSON": () => Response.json({ ok: true }) };
  for (const [kind, other] of Object.entries(others)) {
    if (name === "a file" || (kind === "other JSON" && ["one thing", "an export"].includes(name))) continue;
    test(`${kind} instead of ${name} is one error`, async () => {
      const { retain, sent } = client(other());
      await assert.rejects(call(retain), { name: "RetainError", code: "unexpected_answer" });
      assert.equal(sent.length, 1);
    });
  }
}

test("an export continues at its last line, and a page without one is one error", async () => {
  const first = () => new Response('{"kind":"record"}\n{"kind":"page","cursor":"c"}\n');
  const whole = client(first(), new Response('{"kind":"record"}\n{"kind":"page","cursor":null}\n'));
  const kinds = [];
  for await (const line of whole.retain.users.export("x")) kinds.push(line.kind);
  assert.deepEqual(kinds, ["record", "page", "record", "page"]);
  assert.match(whole.sent[1].url, /export\?cursor=c$/);
  for (const text of ["", '{"kind":"record"}\n']) {
    const { retain } = client(first(), new Response(text));
    const refused = { name: "RetainError", code: "unexpected_answer", message: /cut off/ };
    await assert.rejects(all(retain.users.export("x")), refused);
  }
});

for (const data of ["{", "[]", "7", "null"]) {
  test(`an event whose data is ${data} is one error`, async () => {
    const { retain, sent } = client(streamed(`event: run.started\ndata: ${data}\n\n`));
    await assert.rejects(CALLS["a stream"](retain), { name: "RetainError", code: "unexpected_answer" });
    assert.equal(sent.length, 1);
  });
}

test("a deletion is sent once: a browser gives its answer an empty body", async () => {
  const body = { value: new ReadableStream({ start: (controller) => controller.close() }) };
  const answers = [1, 2].map(() => Object.defineProperty(new Response(null, { status: 204 }), "body", body));
  const { retain, sent } = client(...answers);
  await retain.schedules.delete("s1");
  assert.equal(sent.length, 1);
});

test("a run's events that are not a stream are one error, and are not asked for again", async () => {
  const standing = () => Response.json({ run_id: "1", instance_id: "desk", status: "running" });
  const { retain, sent } = client(standing(), standing());
  await assert.rejects(CALLS["a stream"](retain), { name: "RetainError", code: "unexpected_answer" });
  assert.deepEqual(sent.map((one) => one.method), ["POST", "GET"]);
});

test("a redirect is not followed: it leads away from Retain, perhaps with the key", async () => {
  const { retain, sent } = client(new Response(null, { status: 302, headers: { location: "https://login.example/" } }));
  await assert.rejects(retain.memories.delete("x"), { code: "unexpected_answer", status: 302, message: /login\.example/ });
  assert.equal(sent[0].redirect, "manual");
});

test("a stream that ends without an event is asked for again after a pause", async () => {
  const quiet = Array.from({ length: 5 }, () => streamed(": still here\n\n"));
  const ended = streamed('event: run.completed\ndata: {"run_id": "1"}\n\n');
  const answers = [...quiet, ended];
  const retries = { ...QUICK, firstPauseS: 0.02 };
  const retain = new Retain({ url: "https://retain.example", tenant: "acme", retries, fetch: async () => answers.shift() });
  const begun = performance.now();
  await all(retain.runs.follow("sdr", "desk", "1"));
  assert.ok(performance.now() - begun >= 5 * 19);
});

test("what cannot be an address or a key is refused at once without the key", () => {
  const url = "https://retain.example";
  for (const [options, message] of [
    [{ url: "retain.example" }, /address/],
    [{ url: "ftp://retain.example" }, /http/],
    [{ url: `${url}/?a=b` }, /ends with its path/],
    [{ url: `${url}/base#top` }, /ends with its path/],
    [{ url: "https://ann:SECRET@retain.example" }, /no user and no password/],
    [{ url, key: "" }, /key must be/],
    [{ url, key: "SEC\nRET" }, /key must be/],
    [{ url, key: "SECR\u00c9T" }, /key must be/],
  ]) {
    assert.throws(
      () => new Retain({ tenant: "acme", ...options }),
      (error) => error instanceof TypeError && message.test(error.message) && !/SEC/.test(error.message),
      JSON.stringify(options),
    );
  }
});

test("a deployment may have a path, with a slash at its end or without", async () => {
  for (const url of ["https://retain.example/base", "https://retain.example/base/"]) {
    const sent = [];
    const fetch = async (request) => (sent.push(request.url), Response.json({}));
    await new Retain({ url, tenant: "acme", fetch }).memories.get("x");
    assert.deepEqual(sent, ["https://retain.example/base/v1/tenants/acme/memories/x"]);
  }
});

test("a choice about retries that is undefined is the usual one", async () => {
  const sent = [];
  const fetch = async (request) => {
    sent.push(request);
    if (sent.length > 5) throw new Error("without end");
    return problem(503, "contended");
  };
  const retries = { ...QUICK, attempts: undefined };
  const retain = new Retain({ url: "https://retain.example", tenant: "acme", retries, fetch });
  await assert.rejects(retain.memories.get("x"), { code: "contended" });
  assert.equal(sent.length, 4);
});

test("who waits for a run no longer waits once the signal is aborted", async () => {
  const abort = new AbortController();
  const silent = (request) =>
    new Promise((_, reject) => {
      request.signal.addEventListener("abort", () => reject(request.signal.reason));
      abort.abort(new Error("the page was left"));
    });
  const options = { url: "https://retain.example", tenant: "acme", timeoutS: 1, retries: QUICK, fetch: silent };
  const waited = new Retain(options).runs.wait("sdr", "desk", "1", { signal: abort.signal });
  await assert.rejects(waited, { message: "the page was left" });
});
