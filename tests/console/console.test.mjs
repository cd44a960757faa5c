// What the console decides without a server. BUNDLE: its pure modules as one. OPERATIONS: [path of the document, path of
// the Worker] of every operation.

import assert from "node:assert/strict";
import test from "node:test";

const {
  addressOf,
  afterFailure,
  asOf,
  asOperator,
  axisOf,
  bodyOf,
  caseOf,
  changedIn,
  changesOf,
  conditionsIn,
  cut,
  delegatesOf,
  idOf,
  lanesOf,
  localTime,
  momentAt,
  offsetsOf,
  partsOf,
  placeOf,
  restoring,
  rowAt,
  rowsBetween,
  stepsOf,
  thenOf,
  time,
  titleOf,
  turnsBefore,
} = await import(process.env.BUNDLE);

const event = (seq, kind, at_ms, data = {}) => ({ seq, turn: 1, kind, at_ms, data: { turn: 1, ...data } });

test("an operator finds every operation where the Worker has it", () => {
  for (const [documented, real] of JSON.parse(process.env.OPERATIONS)) assert.equal(asOperator(documented), real);
});

test("an address is read as it was written", () => {
  const query = { text: "tea & milk", user_id: "ann@example.com" };
  const address = addressOf("acme", "memory", "a/b", { ...query, house: "", kind: undefined });
  assert.deepEqual(placeOf(address), { tenant: "acme", view: "memory", id: "a/b", query });
  assert.deepEqual(placeOf(""), { tenant: "default", view: "runs", id: undefined, query: {} });
});

test("a side effect is one row from its beginning to its end, and two calls of a turn are two", () => {
  const steps = stepsOf([
    event(1, "model_asked", 0),
    event(2, "model_answered", 10),
    event(3, "tool_called", 10, { index: 0, name: "a" }),
    event(4, "tool_called", 11, { index: 1, name: "b" }),
    event(5, "tool_answered", 20, { index: 1, name: "b", failed: true }),
    event(6, "tool_answered", 30, { index: 0, name: "a", failed: false }),
    event(7, "run_completed", 31, { output: "done" }),
  ]);
  assert.deepEqual(
    steps.map(({ kind, title, fromMs, toMs, failed }) => [kind, title, fromMs, toMs, failed]),
    [
      ["model", "Model, turn 1", 0, 10, false],
      ["tool", "a", 10, 30, false],
      ["tool", "b", 11, 20, true],
      ["run", "run completed", 31, 31, false],
    ],
  );
});

test("what a run took over from another one is marked", () => {
  const steps = stepsOf([
    event(1, "model_asked", 0),
    event(2, "model_answered", 0),
    event(3, "run_forked", 0, { run_id: "a", turns: 1 }),
    event(4, "model_asked", 1),
  ]);
  assert.deepEqual(steps.map(({ title, carried }) => [title, carried]), [
    ["Model, turn 1", true],
    ["run forked", false],
    ["Model, turn 1", false],
  ]);
});

test("what a crash interrupted is marked, and is no part of what follows", () => {
  const steps = stepsOf([
    event(1, "tool_called", 0, { index: 0, name: "a" }),
    event(2, "approval_requested", 1, { index: 1, name: "b" }),
    event(3, "run_recovered", 50, { times: 1 }),
    event(4, "tool_called", 60, { index: 0, name: "a" }),
    event(5, "tool_answered", 70, { index: 0, name: "a" }),
    event(6, "approval_answered", 80, { index: 1, approved: true }),
  ]);
  assert.deepEqual(
    steps.map(({ kind, interrupted, toMs }) => [kind, interrupted, toMs]),
    [
      ["tool", true, undefined],
      ["approval", false, 80],
      ["crash", false, 50],
      ["tool", false, 70],
    ],
  );
});

test("repeated calls are counted in the row of their call", () => {
  const steps = stepsOf([
    event(1, "model_asked", 0),
    event(2, "call_retried", 1, { index: null, code: "upstream_unavailable", delay_ms: 5 }),
    event(3, "model_unavailable", 2, { code: "upstream_unavailable" }),
    event(4, "model_answered", 9),
    event(5, "tool_called", 10, { index: 0, name: "a" }),
    event(6, "call_retried", 11, { index: 0, code: "x", delay_ms: 5 }),
    event(7, "tool_answered", 12, { index: 0, name: "a" }),
  ]);
  assert.deepEqual(steps.map(({ kind, retries, events }) => [kind, retries, events.length]), [
    ["model", 2, 4],
    ["tool", 1, 3],
  ]);
});

test("a long pause is folded, and everything stays within the width and in its order", () => {
  const steps = stepsOf([
    event(1, "model_asked", 0),
    event(2, "model_answered", 100),
    event(3, "model_asked", 3_600_000),
    event(4, "model_answered", 3_600_100),
  ]);
  const { x, folds, wholeMs, busyMs } = axisOf(steps, 0);
  const drawn = [0, 100, 1_000_000, 3_600_000, 3_600_100].map(x);
  assert.deepEqual(drawn, drawn.toSorted((one, other) => one - other));
  assert.ok(drawn.every((one) => one >= 0 && one <= 1));
  assert.ok(drawn[3] - drawn[1] < 0.2);
  assert.deepEqual(folds.map(({ ms }) => ms), [3_599_900]);
  assert.deepEqual([wholeMs, busyMs], [3_600_100, 200]);
  assert.deepEqual(axisOf([], 0).folds, []);
});

test("delegated runs belong to the calls that began them, by agent and order", () => {
  const call = (seq, agent) => event(seq, "tool_called", seq, { index: seq, name: "delegate", arguments: { agent } });
  const run = { delegated: [{ run_id: "1", agent_type: "a" }, { run_id: "2", agent_type: "b" }, { run_id: "3", agent_type: "a" }] };
  assert.deepEqual([...delegatesOf(run, stepsOf([call(1, "a"), call(2, "a"), call(3, "b"), call(4, "c")]))], [
    [1, "1"],
    [2, "3"],
    [3, "2"],
  ]);
});

test("a later turn reads what the earlier ones answered, without those that were cut", () => {
  const turn = (number, seq) => [
    { seq, turn: number, kind: "model_asked", at_ms: seq, data: { turn: number, cut: number === 3 ? [1] : [] } },
    { seq: seq + 1, turn: number, kind: "model_answered", at_ms: seq + 1, data: { turn: number, content: `answer ${number}`, calls: [] } },
  ];
  const events = [...turn(1, 1), ...turn(2, 3), ...turn(3, 5)];
  const last = stepsOf(events).at(-1);
  assert.deepEqual(turnsBefore(events, last).map(({ role, content }) => [role, content]), [
    ["memory", "turns 1"],
    ["assistant", "answer 2"],
  ]);
});

test("only the rows near the window are drawn, whatever the heights", () => {
  const keys = Array.from({ length: 1_000 }, (_, at) => at);
  const offsets = offsetsOf(keys, new Map([[3, 500]]), 30);
  assert.equal(offsets.at(-1), 999 * 30 + 500);
  assert.deepEqual(rowsBetween(offsets, 0, 100), [0, 4]);
  assert.deepEqual(rowsBetween(offsets, 300, 320), [3, 4]);
  const [first, end] = rowsBetween(offsets, 15_000, 15_600);
  assert.ok(first > 400 && end - first < 30);
  assert.deepEqual(rowsBetween(offsets, 1e9, 1e9 + 1), [999, 1000]);
  assert.deepEqual(rowsBetween(offsetsOf([], new Map(), 30), -600, 600), [0, 0]);
});

test("a version is restored by what differs from it, of the fields that can be edited", () => {
  const events = [
    { data: { content: "a", metadata: { x: 1 }, valid_from_ms: 1 } },
    { data: { content: "b", valid_to_ms: 5 } },
    { data: { metadata: { x: 2 } } },
  ];
  const present = { content: "b", metadata: { x: 2 }, valid_from_ms: 1 };
  assert.deepEqual(restoring(events, 0, present), { content: "a", metadata: { x: 1 } });
  assert.deepEqual(restoring(events, 1, present), { metadata: { x: 1 } });
  assert.deepEqual(restoring(events, 2, present), {});
});

test("the fields of the forms become conditions and bodies, and wrong JSON is refused", () => {
  assert.deepEqual(conditionsIn({ kind: "task", from_ms: "5", filter: '{"order": 1}' }), { order: 1, kind: "task", recorded_at_ms: { $gte: 5 } });
  assert.deepEqual(conditionsIn({}), {});
  for (const wrong of ["[]", "null", "{", "1"]) assert.throws(() => conditionsIn({ filter: wrong }), /JSON object/);
  const body = bodyOf({ query: "tea", user_id: "ann", min_score: "0.3", as_of_ms: "7" });
  assert.deepEqual(body, { query: "tea", top_k: 10, min_score: 0.3, explain: true, runners_up: 5, user_id: "ann", as_of_ms: 7 });
});

test("a case has what was found as fixtures, and what is relevant of them", () => {
  const found = [
    { id: "x", content: "one", kind: "fact", metadata: {}, subject: null, predicate: null, object: null, confidence: 1, importance: 0.5 },
    { id: "y", content: "two", kind: "fact", metadata: {}, subject: "s", predicate: "p", object: "o", confidence: 1, importance: 0.5 },
  ];
  const made = caseOf("c", { query: "q", top_k: "3" }, found, new Set(["y"]));
  assert.deepEqual(made.expected, { memories: { relevant: ["m2"], k: 3 } });
  assert.deepEqual(made.memories[0], { id: "m1", content: "one", kind: "fact", metadata: {}, confidence: 1, importance: 0.5 });
  assert.equal(made.memories[1].subject, "s");
  assert.equal(idOf("Refunds of sara@example.com?"), "refunds-of-sara-example-com");
  assert.equal(idOf("…"), "case");
});

test("the parts of a score keep their order, and what is nothing is left out", () => {
  assert.deepEqual(partsOf({ vector: 1, asking: -0.5, words: 2, dated: 0, exact: 0.0001 }), [["words", 2], ["vector", 1], ["asking", -0.5]]);
});

test("an address that somebody mistyped is read all the same", () => {
  assert.equal(placeOf("#/acme/people/50%").id, "50%");
});

test("the changes of a memory are what an event set to another value", () => {
  const events = [{ data: { content: "a", metadata: {} } }, { data: { content: "b" } }, { data: { content: "b", note: 1 } }];
  assert.deepEqual(changesOf(events), [[], [{ field: "content", before: "a", after: "b" }], []]);
});

test("facts are in lanes by what they say, the earliest first, and other memories in none", () => {
  const fact = (predicate, object, valid_from_ms) => ({ predicate, object, valid_from_ms });
  const lanes = lanesOf([fact("lives_in", "Lyon", 3), fact(null, null, 0), fact("likes:tea", "tea", 2), fact("lives_in", "Porto", 1)]);
  assert.deepEqual(
    lanes.map(({ predicate, facts }) => [predicate, facts.map((one) => one.object)]),
    [["lives_in", ["Porto", "Lyon"]], ["likes", ["tea"]]],
  );
});

test("an agent that is called like a part of an address is reached too", () => {
  assert.equal(asOperator("/v1/agents/acme/runs/instances/main"), "/v1/agents/acme/runs/instances/main");
  assert.equal(asOperator("/v1/agents/acme/runs"), "/admin/agents/acme/runs");
  assert.equal(asOperator("/v1/agents/acme/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV"), "/admin/agents/acme/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV");
});

test("a moment is the row of its event, or of what wrote a memory in a turn", () => {
  const calls = [
    event(1, "model_asked", 0),
    event(2, "model_answered", 1),
    event(3, "tool_called", 2, { index: 0, name: "store_memory" }),
    event(4, "tool_called", 2, { index: 1, name: "store_memory" }),
    event(5, "tool_answered", 3, { index: 1, name: "store_memory", content: '{"id": "other"}' }),
    event(6, "tool_answered", 3, { index: 0, name: "store_memory", content: '{"id": "mine"}' }),
    { ...event(7, "model_asked", 4), turn: 2 },
  ];
  const steps = stepsOf(calls);
  const found = (moment) => rowAt(steps, moment);
  assert.deepEqual([found({ at: "3" }), found({ at: "5" }), found({ at: "99" }), found({})], [3, 4, undefined, undefined]);
  assert.deepEqual([found({ turn: "1", wrote: "mine" }), found({ turn: "1", wrote: "other" })], [3, 4]);
  assert.deepEqual([found({ turn: "2", wrote: "mine" }), found({ turn: "1" }), found({ turn: "9" })], [7, 1, undefined]);
});

test("a memory's source names the turn, and what was asked where it was extracted from that", () => {
  assert.equal(momentAt("acme", { origin: "agent", run_id: "R", step: 3 }, "M"), "#/acme/runs/R?turn=3&wrote=M");
  assert.equal(momentAt("acme", { origin: "extraction", run_id: "R", step: 1 }, "M"), "#/acme/runs/R?at=asked");
});

test("a text is cut between characters", () => {
  assert.equal(cut("tea", 3), "tea");
  assert.equal(cut("teapot", 3, ""), "tea");
  assert.equal(cut("te🫖pot", 3, ""), "te");
  assert.equal(cut("te🫖pot", 4, "…"), "te🫖…");
});

test("a memory at an earlier time has the fields of then", () => {
  const events = [
    { at_ms: 1, data: { content: "old", metadata: {}, valid_to_ms: null } },
    { at_ms: 5, data: { content: "new" } },
    { at_ms: 9, data: { valid_to_ms: 9 } },
  ];
  const memory = { content: "new", valid_to_ms: 9, superseded_by: "X", metadata: {}, events };
  const shown = ({ content, valid_to_ms, superseded_by }) => [content, valid_to_ms, superseded_by];
  assert.deepEqual([1, 5, 9].map((at) => shown(thenOf(memory, at))), [["old", null, null], ["new", null, null], ["new", 9, "X"]]);
});

test("an edit has the fields that somebody changed, and what nobody touched stays, whatever its field shows of it", () => {
  const memory = { kind: "fact", subject: "ann", predicate: null, object: null, confidence: 1, importance: 0.5, expires_at_ms: 1_700_000_000_123, metadata: { a: 1 } };
  const same = { kind: "fact", subject: "ann", confidence: "1", importance: "0.5", expires_at_ms: "1700000000000", metadata: '{"a": 1}' };
  assert.deepEqual(changedIn(memory, same, same), {});
  const { subject: _, expires_at_ms: __, ...less } = same;
  assert.deepEqual(changedIn(memory, same, { ...less, metadata: '{"a": 2}', importance: "0.7" }), { subject: null, importance: 0.7, expires_at_ms: null, metadata: { a: 2 } });
  const odd = { ...memory, object: "red\nblue", expires_at_ms: 9_007_199_254_740_000 };
  const shown = { ...less, subject: "ann", object: "redblue" };
  assert.deepEqual(changedIn(odd, shown, { ...shown, confidence: "0.8" }), { confidence: 0.8 });
  assert.deepEqual(changedIn(odd, shown, { ...shown, object: "green" }), { object: "green" });
  assert.throws(() => changedIn(memory, same, { ...same, metadata: "[1]" }), /Metadata is a JSON object/);
});

test("what was known stays after a failure", () => {
  assert.deepEqual(afterFailure({ value: 1 }, "lost"), { value: 1, stale: "lost" });
  assert.deepEqual(afterFailure(undefined, "lost"), { error: "lost" });
  assert.deepEqual(afterFailure({ error: "before" }, "lost"), { error: "lost" });
});

test("a time that no field of times can have is no error", () => {
  assert.deepEqual([9_007_199_254_740_000, Number.NaN].map(localTime), ["", ""]);
  assert.match(localTime(253_402_300_800_000 + 86_400_000), /^10000-01-0[12]T/);
  assert.deepEqual([time(9_007_199_254_740_000), asOf({ query: { as_of_ms: "1e20" } })], ["9007199254740000 ms", undefined]);
});

test("a place has a title", () => {
  const titles = { runs: "Runs", memory: "Memory" };
  assert.equal(titleOf({ tenant: "acme", view: "memory", id: "M", query: {} }, titles), "M · Memory · acme · Retain");
  assert.equal(titleOf({ tenant: "acme", view: "nothing", query: {} }, titles), "Runs · acme · Retain");
});
