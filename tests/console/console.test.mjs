// What the console decides without a server. BUNDLE: its pure modules as one. OPERATIONS: [path of the document, path of
// the Worker] of every operation.

import assert from "node:assert/strict";
import test from "node:test";

const { addressOf, asOperator, changesOf, lanesOf, placeOf, scale, stepsOf } = await import(process.env.BUNDLE);

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

test("what a crash interrupted stays open, and is no part of what follows", () => {
  const steps = stepsOf([
    event(1, "tool_called", 0, { index: 0, name: "a" }),
    event(2, "run_recovered", 50, { times: 1 }),
    event(3, "tool_called", 60, { index: 0, name: "a" }),
    event(4, "tool_answered", 70, { index: 0, name: "a" }),
  ]);
  assert.deepEqual(steps.map((step) => step.toMs), [undefined, 50, 70]);
});

test("a long pause is folded, and everything stays within the width", () => {
  const steps = stepsOf([
    event(1, "model_asked", 0),
    event(2, "model_answered", 100),
    event(3, "approval_requested", 100, { index: 0, name: "a" }),
    event(4, "approval_answered", 200, { index: 0, approved: true }),
    event(5, "model_asked", 3_600_000),
    event(6, "model_answered", 3_600_100),
  ]);
  const drawn = scale(steps, 0);
  assert.deepEqual(drawn.map((one) => one.folded), [false, false, true]);
  assert.ok(drawn.every(({ from, to }) => from >= 0 && from <= to && to <= 1));
  assert.ok(drawn[2].from - drawn[1].to < 0.2);
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
