// Every choice that a caller of the TypeScript client has reaches the request, or what the client does. USUAL: how the Python
// client repeats requests by default, as JSON.

import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";

import { all, client, load, problem, QUICK, streamed } from "./canned.mjs";

const { Retain, RetainError } = await load("index");
const { afterAnswer, afterFailure, sleep, USUAL } = await load("retries");
const { eventsOf } = await load("server-events");

const AGENT = "/v1/agents/acme/sdr";
const RUN = `${AGENT}/instances/desk/runs/1`;
const TENANT = "/v1/tenants/acme";
const ids = ["sdr", "desk", "1"];
const key = { idempotencyKey: "of the caller" };
const keyed = { "idempotency-key": "of the caller" };
const png = (type) => new Blob(["PNG"], { type });

/** [what is called, the request's method and address, its headers, its body] */
const REQUESTS = [
  [(r) => r.runs.start("sdr", { input: "hi" }, key), `POST ${AGENT}/run`, keyed, { input: "hi" }],
  [(r) => all(r.runs.stream("sdr", { input: "hi" }, key)), `POST ${AGENT}/run`, keyed, { input: "hi", stream: true }],
  [(r) => all(r.runs.follow(...ids, { lastEventId: "7" })), `GET ${RUN}/events`, { "last-event-id": "7" }],
  [(r) => all(r.runs.follow(...ids)), `GET ${RUN}/events`, { "last-event-id": null }],
  [(r) => r.runs.retry(...ids, key), `POST ${RUN}/retry`, keyed],
  [(r) => r.runs.fork(...ids, 2, key), `POST ${RUN}/fork`, keyed, { turns: 2 }],
  [(r) => r.runs.approve(...ids, "2.0", "fine"), `POST ${RUN}/resume`, {}, { call: "2.0", decision: "approve", reason: "fine" }],
  [(r) => r.runs.reject(...ids, "2.0", "no"), `POST ${RUN}/resume`, {}, { call: "2.0", decision: "reject", reason: "no" }],
  [(r) => r.runs.cancel(...ids, { reason: "late" }), `POST ${RUN}/cancel`, {}, { reason: "late" }],
  [(r) => r.attachments.upload(png("image/png"), { name: "a.png", user: "ann" }), "POST /v1/agents/acme/attachments?name=a.png&user=ann", { "content-type": "image/png" }, "PNG"],
  [(r) => r.attachments.upload(png("image/png"), { mediaType: "text/plain" }), "POST /v1/agents/acme/attachments", { "content-type": "text/plain" }, "PNG"],
  [(r) => r.attachments.upload(png("")), "POST /v1/agents/acme/attachments", { "content-type": "application/octet-stream" }, "PNG"],
  [(r) => r.attachments.upload(new File(["PNG"], "b.png")), "POST /v1/agents/acme/attachments?name=b.png", {}, "PNG"],
  [(r) => r.attachments.upload(new File(["PNG"], "b.png"), { name: "c" }), "POST /v1/agents/acme/attachments?name=c", {}, "PNG"],
  [(r) => all(r.memories.list({ filter: { a: 1 } })), `GET ${TENANT}/memories?filter=%7B%22a%22%3A1%7D`],
  [(r) => r.memories.update("m", { kind: "fact" }, { ifMatch: "e1" }), `PATCH ${TENANT}/memories/m`, { "if-match": '"e1"' }, { kind: "fact" }],
  [(r) => r.agents.define("sdr", {}, { ifMatch: 0 }), `PUT ${TENANT}/agents/sdr`, { "if-match": '"0"' }, {}],
  [(r) => r.agents.rollBack("sdr", 2, { ifMatch: 3 }), `POST ${TENANT}/agents/sdr/rollback`, { "if-match": '"3"' }, { version: 2 }],
  [(r) => r.agents.delete("sdr", { ifMatch: 3 }), `DELETE ${TENANT}/agents/sdr`, { "if-match": '"3"' }],
  [(r) => r.agents.delete("sdr"), `DELETE ${TENANT}/agents/sdr`, { "if-match": null }],
  [(r) => r.schedules.create({ agent_type: "sdr" }, key), `POST ${TENANT}/schedules`, keyed, { agent_type: "sdr" }],
  [(r) => r.schedules.pause("s"), `PATCH ${TENANT}/schedules/s`, {}, { state: "paused" }],
  [(r) => r.schedules.resume("s"), `PATCH ${TENANT}/schedules/s`, {}, { state: "active" }],
];

for (const [call, target, headers = {}, body] of REQUESTS) {
  test(`${call} is ${target}`, async () => {
    const { retain, sent } = client(problem(404, "no_such_thing"));
    await assert.rejects(call(retain), { code: "no_such_thing" });
    const [request, ...more] = sent;
    assert.deepEqual(more, []);
    assert.equal(`${request.method} ${request.url.replace("https://retain.example", "")}`, target);
    assert.equal(request.body, body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body));
    for (const [name, value] of Object.entries(headers)) assert.equal(request.headers.get(name), value, name);
  });
}

test("a client without a key sends none, and a fetch of its own keeps its name", async () => {
  const sent = [];
  const { fetch } = globalThis;
  globalThis.fetch = async function (request) {
    assert.equal(this, globalThis, "browsers refuse a fetch that is called as a method of something else");
    sent.push(request.headers.get("authorization"));
    return Response.json({});
  };
  try {
    await new Retain({ url: "https://retain.example", tenant: "acme" }).memories.get("x");
  } finally {
    globalThis.fetch = fetch;
  }
  assert.deepEqual(sent, [null]);
});

test("in a page an address may be one of its own host", async () => {
  globalThis.location = { href: "https://shop.example/help" };
  const fetch = async () => Response.json({});
  try {
    new Retain({ url: "/retain", tenant: "acme", fetch });
  } finally {
    delete globalThis.location;
  }
  assert.throws(() => new Retain({ url: "/retain", tenant: "acme", fetch }), TypeError);
  assert.throws(() => new Retain({ url: "https://ann@retain.example", tenant: "acme", fetch }), /no user/);
});

test("both clients repeat as often and as soon by default", () => {
  const { attempts, first_pause_s, longest_pause_s } = JSON.parse(process.env.USUAL);
  assert.deepEqual(USUAL, { attempts, firstPauseS: first_pause_s, longestPauseS: longest_pause_s });
});

test("pauses double up to the longest and end with the attempts", () => {
  const retries = { attempts: 6, firstPauseS: 1, longestPauseS: 5 };
  for (const [attempt, most] of [[1, 1], [2, 2], [3, 4], [4, 5], [5, 5]]) {
    for (let times = 0; times < 20; times++) {
      const pause = afterAnswer(retries, attempt, 503, undefined, true);
      assert.ok(most / 2 <= pause && pause <= most, `${pause} before attempt ${attempt + 1}`);
    }
  }
  assert.equal(afterAnswer(retries, 6, 503, undefined, true), undefined);
});

for (const [status, retryAfterS, again, repeated] of [
  [429, undefined, false, true],
  [502, undefined, true, true],
  [503, undefined, true, true],
  [504, undefined, true, true],
  [503, undefined, false, false],
  [429, 30, true, true],
  [429, 31, true, false],
  [500, undefined, true, false],
  [409, undefined, true, false],
]) {
  test(`after ${status}, with a pause of ${retryAfterS}, a request is ${repeated ? "" : "not "}repeated (idempotent: ${again})`, () => {
    assert.equal(afterAnswer(USUAL, 1, status, retryAfterS, again) !== undefined, repeated);
  });
}

test("the server's pause counts if it is longer, and a failure is repeated only of what is idempotent", () => {
  assert.equal(afterAnswer(USUAL, 1, 429, 20, false), 20);
  assert.equal(afterFailure(USUAL, 1, false), undefined);
  assert.ok(afterFailure(USUAL, 1, true) > 0);
});

test("choices about pauses and silence reach the requests", async () => {
  const asked = [];
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (call, ms) => (asked.push(ms), ms >= 60_000 ? setTimeout(() => undefined, 0) : setTimeout(call, 0));
  const fetch = async () => problem(503, "contended");
  const pauses = async (options) => {
    asked.length = 0;
    await assert.rejects(new Retain({ url: "https://retain.example", tenant: "acme", fetch, ...options }).memories.get("x"));
    return [...asked];
  };
  const within = (all, most) => {
    const [pause] = all.filter((ms) => ms < 60_000);
    return pause >= most / 2 && pause <= most;
  };
  try {
    assert.ok(within(await pauses({ retries: { firstPauseS: 2 } }), 2_000));
    assert.ok(within(await pauses({ retries: { firstPauseS: 9, longestPauseS: 3 } }), 3_000));
    assert.equal((await pauses({}))[0], 60_000);
    assert.equal((await pauses({ timeoutS: 70 }))[0], 70_000);
  } finally {
    globalThis.setTimeout = setTimeout;
  }
});

test("what somebody aborted rejects before the pause, ends it, and leaves no timer", async () => {
  const left = new Error("the page was left");
  await assert.rejects(sleep(60, AbortSignal.abort(left)), left);
  const abort = new AbortController();
  const slept = sleep(60, abort.signal);
  abort.abort(left);
  await assert.rejects(slept, left);
  const timers = process.getActiveResourcesInfo().filter((one) => one === "Timeout").length;
  const { signal } = new AbortController();
  await sleep(0.001, signal);
  assert.deepEqual(getEventListeners(signal, "abort"), []);
  assert.ok(process.getActiveResourcesInfo().filter((one) => one === "Timeout").length <= timers);
});

const silent = (request) =>
  new Promise((_, reject) => request.signal.addEventListener("abort", () => reject(request.signal.reason)));
const waiting = () => Response.json({ run_id: "1", instance_id: "desk", status: "running" });
const SIGNALLED = {
  start: (retain, signal) => retain.runs.start("sdr", { input: "hi" }, { signal }),
  stream: (retain, signal) => all(retain.runs.stream("sdr", { input: "hi" }, { signal })),
  follow: (retain, signal) => all(retain.runs.follow(...ids, { signal })),
  get: (retain, signal) => retain.runs.get(...ids, { signal }),
  wait: (retain, signal) => retain.runs.wait(...ids, { pollS: 60, signal }),
  retry: (retain, signal) => retain.runs.retry(...ids, { signal }),
  fork: (retain, signal) => retain.runs.fork(...ids, 1, { signal }),
  upload: (retain, signal) => retain.attachments.upload(png(""), { signal }),
};
/** How the server is when somebody aborts: it says nothing, is away, has sent a part of the answer, or said what ends a connection. */
const SERVERS = {
  "is silent": silent,
  "is away": async () => Promise.reject(new TypeError("fetch failed")),
  "is busy": async () => problem(429, "rate_limited"),
  "has begun to answer": async (request) =>
    new Response(
      new ReadableStream({
        start(begun) {
          begun.enqueue(new TextEncoder().encode(": still here\n\n"));
          request.signal.addEventListener("abort", () => begun.error(request.signal.reason));
        },
      }),
      { headers: { "content-type": "text/event-stream" } },
    ),
  "cuts streams": async () => streamed(": still here\n\n"),
  "ends them at once": async () => streamed(""),
};

for (const [name, call] of Object.entries(SIGNALLED)) {
  for (const [state, fetch] of Object.entries(SERVERS)) {
    if (!["stream", "follow"].includes(name) && ["has begun to answer", "cuts streams", "ends them at once"].includes(state)) continue;
    test(`${name} ends with the reason of its signal while the server ${state}`, async () => {
      const abort = new AbortController();
      const retries = { attempts: 3, firstPauseS: 60, longestPauseS: 60 };
      const retain = new Retain({ url: "https://retain.example", tenant: "acme", retries, fetch });
      const left = new Error("the page was left");
      setTimeout(() => abort.abort(left), 10);
      await assert.rejects(call(retain, abort.signal), left);
    });
  }
}

test("who waits for a run is answered when it asks for an approval, and when the time is up", async () => {
  const asks = { run_id: "1", status: "waiting", waiting_for: { kind: "approval", call: "2.0" } };
  const asked = client(waiting(), Response.json(asks));
  const begun = performance.now();
  assert.deepEqual(await asked.retain.runs.wait(...ids, { pollS: 0.001 }), asks);
  assert.ok(performance.now() - begun < 950, "it is asked for as often as the caller wants");
  const late = client(waiting(), waiting());
  assert.equal((await late.retain.runs.wait(...ids, { timeoutS: 0.01, pollS: 0.02 })).status, "running");
  assert.equal(late.sent.length, 1);
  const abort = new AbortController();
  const slow = client(waiting()).retain.runs.wait(...ids, { pollS: 60, signal: abort.signal });
  setTimeout(() => abort.abort(new Error("the page was left")), 10);
  await assert.rejects(slow, { message: "the page was left" });
});

test("a file arrives as its bytes, whatever its type", async () => {
  for (const type of ["application/json", "image/png"]) {
    const { retain } = client(new Response(new Uint8Array([255, 0, 123]), { headers: { "content-type": type } }));
    const file = await retain.attachments.download("0A");
    assert.deepEqual([file.type, [...new Uint8Array(await file.arrayBuffer())]], [type, [255, 0, 123]]);
  }
});

test("all that is to be cancelled is, page by page", async () => {
  const page = (run_id, cursor) => Response.json({ runs: [{ run_id }], cursor });
  const { retain, sent } = client(page("2", "c"), page("1", null));
  const cancelled = await retain.runs.cancelAll({ user_id: "ann", reason: "closed" });
  assert.deepEqual(cancelled.map((one) => one.run_id), ["2", "1"]);
  assert.deepEqual(sent.map((one) => JSON.parse(one.body).cursor), [null, "c"]);
});

test("an erasure continues after the server's pause until it is complete or the time is up", async () => {
  const slice = (retry_after_ms) => Response.json({ receipt: {}, retry_after_ms });
  const whole = client(slice(30), slice(null));
  const begun = performance.now();
  assert.equal((await whole.retain.users.forget("ann")).retry_after_ms, null);
  assert.ok(performance.now() - begun >= 29);
  const part = client(slice(1));
  assert.equal((await part.retain.users.forget("ann", { timeoutS: 0 })).retry_after_ms, 1);
});

const pieces = async function* (...texts) {
  for (const text of texts) yield new TextEncoder().encode(text);
};

test("events are read as the standard has them", async () => {
  const events = await all(eventsOf(pieces('\ufeffevent: a\rdata: {"t":\rdata: 1}\rid\r\rdata:{}\r', "\n\r\nevent: none\n\ndata\ndata: {}\n\n")));
  assert.deepEqual(events[0], { name: "a", data: { t: 1 }, id: "" });
  assert.deepEqual(events.map((event) => event.data), [{ t: 1 }, {}, {}]);
  const joined = streamed('event: run.failed\ndata: {"run_id": "1", "output":\ndata: null}\n\n', "event: run.started\ndata: {}\n\n");
  const failed = client(joined).retain.runs.follow(...ids);
  assert.deepEqual((await all(failed)).map((event) => event.name), ["run.failed"], "nothing follows it");
  assert.equal(failed.result.output, null);
  await assert.rejects(all(eventsOf(pieces('data: {"t": "a\ndata: b"}\n\n'))), { code: "unexpected_answer" });
  await assert.rejects(all(eventsOf(pieces("data:\n\n"))), { code: "unexpected_answer" });
});

const started = 'id: 0\nevent: run.started\ndata: {"run_id": "1", "instance_id": "desk"}\n\n';
const ended = 'id: 9\nevent: run.completed\ndata: {"run_id": "1"}\n\n';

test("a stream stays with its run, and continues after the last event that has a position", async () => {
  const other = 'event: tool.answered\ndata: {"run_id": "of a delegate", "instance_id": "other"}\n\n';
  const { retain, sent } = client(streamed(started, other), streamed(ended));
  const events = retain.runs.stream("sdr", { input: "hi" });
  await all(events);
  assert.deepEqual([events.runId, events.instanceId, events.lastEventId], ["1", "desk", "9"]);
  assert.equal(sent[1].headers.get("last-event-id"), "0");
  assert.ok(sent[1].url.endsWith(`${RUN}/events`));
});

test("a run without further events is the end of its stream", async () => {
  const { retain, sent } = client(new Response(null, { status: 204 }));
  assert.deepEqual(await all(retain.runs.follow(...ids)), []);
  assert.equal(sent.length, 1);
});

test("only failures one after the other are counted, and a silent stream is one", async () => {
  const failed = () => streamed("");
  const { retain } = client(failed(), failed(), streamed(started), failed(), failed(), streamed(ended));
  assert.equal((await all(retain.runs.follow(...ids))).length, 2);
  const hanging = () =>
    new Response(new ReadableStream({ start: () => undefined }), { headers: { "content-type": "text/event-stream" } });
  const options = { url: "https://retain.example", tenant: "acme", timeoutS: 0.01, retries: QUICK, fetch: async () => hanging() };
  await assert.rejects(all(new Retain(options).runs.follow(...ids)), { code: "no_answer", message: /nothing was heard/ });
});

test("who stops to read a stream ends its connection", async () => {
  const cancelled = [];
  const body = new ReadableStream({ start: (begun) => begun.enqueue(new TextEncoder().encode(started)), cancel: () => void cancelled.push(1) });
  const { retain } = client(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  for await (const _ of retain.runs.follow(...ids)) break;
  assert.deepEqual(cancelled, [1]);
});

test("an error has what is known: its request's id, its cause, and no more than the beginning of a page", async () => {
  const found = (call) => call.then(() => assert.fail("it is refused"), (error) => error);
  const named = await found(client(problem(404, "no", { "x-request-id": "of the header" })).retain.memories.get("x"));
  assert.equal(named.requestId, "of the header");
  const unnamed = await found(client(Response.json({ code: "session_ended", detail: "no" }, { status: 401 })).retain.memories.get("x"));
  assert.deepEqual([unnamed.code, unnamed.requestId], ["session_ended", undefined]);
  const page = await found(client(new Response("x".repeat(5_000), { status: 403, headers: { "x-request-id": "r2" } })).retain.memories.get("x"));
  assert.deepEqual([page.message.length < 250, page.requestId], [true, "r2"]);
  const cause = new TypeError("fetch failed");
  const lost = await found(client(cause, cause, cause).retain.memories.get("x"));
  assert.deepEqual([lost instanceof RetainError, lost.message, lost.cause], [true, "fetch failed", cause]);
});

test("a list ends with a page without a cursor, and an answer that is no object is none", async () => {
  assert.deepEqual(await client(Response.json({ runs: [{ run_id: "1" }] })).retain.runs.list().all(), [{ run_id: "1" }]);
  await assert.rejects(client(Response.json("text")).retain.memories.get("x"), { code: "unexpected_answer" });
});

for (const pause of ["-5", "1.5", "5 s", ""]) {
  test(`a pause of ${JSON.stringify(pause)} is none that the server may ask for`, async () => {
    const { retain } = client(problem(409, "agent_busy", { "retry-after": pause }));
    await assert.rejects(retain.memories.get("x"), { code: "agent_busy", retryAfterS: undefined });
  });
}

test("a date that is past is no pause", async () => {
  const past = new Date(Date.now() - 5_000).toUTCString();
  await assert.rejects(client(problem(409, "agent_busy", { "retry-after": past })).retain.memories.get("x"), { retryAfterS: 0 });
});
