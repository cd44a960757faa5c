// The module of JavaScript that runs statements. MODULE: its file. The databases are what workerd gives it, as far as it asks.

import assert from "node:assert/strict";
import test from "node:test";

const { batch, rows, run } = await import(process.env.MODULE);
const found = (results) => ({ results, success: true, meta: { changes: 2, size_after: 4096, duration: 0.1 } });

function d1(answers) {
  const asked = [];
  const prepare = (sql) => ({ bind: (...values) => ({ sql, values, all: async () => (asked.push([sql, ...values]), answers[0]) }) });
  const all = async (statements) => (asked.push(...statements.map(({ sql, values }) => [sql, ...values])), answers);
  return { asked, prepare, batch: all };
}

test("a statement is run with its values", async () => {
  const database = d1([found([{ a: 1 }])]);
  assert.deepEqual(await run(database, ["SELECT ? AS a", 1]), [[{ a: 1 }], 2, 4096]);
  assert.deepEqual(database.asked, [["SELECT ? AS a", 1]]);
});

test("a batch is run in its order", async () => {
  const database = d1([found([]), found([{ b: null }])]);
  const statements = [["DELETE FROM t"], ["SELECT ? AS b, ?", null, "x"]];
  assert.deepEqual(await batch(database, statements), [[[], 2, 4096], [[{ b: null }], 2, 4096]]);
  assert.deepEqual(database.asked, statements);
});

test("what a database throws when it is asked is a rejection", async () => {
  const refusing = { prepare: () => { throw new Error("D1_TYPE_ERROR"); } };
  await assert.rejects(run(refusing, ["SELECT ?", undefined]), /D1_TYPE_ERROR/);
  await assert.rejects(batch(refusing, [["SELECT ?", undefined]]), /D1_TYPE_ERROR/);
});

test("a statement of an object returns its rows, or nothing", () => {
  const sql = { exec: (statement, ...values) => ({ toArray: () => (values.length > 0 ? [{ statement, values }] : []) }) };
  assert.deepEqual(rows(sql, "SELECT ?", 1), [{ statement: "SELECT ?", values: [1] }]);
  assert.equal(rows(sql, "DELETE FROM t"), undefined);
});
