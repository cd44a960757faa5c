// Every method of the TypeScript client that its README does not show, against a server. Its types are checked, too.

import assert from "node:assert/strict";

import { hasEnded, Retain, RetainError, type Run } from "retain-client";

const url = process.env.RETAIN_URL!;
const tenant = process.env.RETAIN_TENANT!;
const retain = new Retain({ url, tenant, key: process.env.RETAIN_KEY! });

function callOf(run: Run): string {
  assert.ok(!hasEnded(run) && run.waiting_for?.kind === "approval");
  return run.waiting_for.call;
}

async function outputOf(runId: string): Promise<string | null> {
  const run = await retain.runs.wait("clerk", "desk", runId, { pollS: 0.1 });
  assert.ok(hasEnded(run));
  return run.output;
}

const refund = { input: "refund AB-1", instance_id: "desk", user: { id: "ann" } };
const first = await retain.runs.start("clerk", refund);
const waiting = await retain.runs.wait("clerk", "desk", first.run_id, { timeoutS: 5 });
await retain.runs.approve("clerk", "desk", first.run_id, callOf(waiting), "because");
assert.equal(await outputOf(first.run_id), "It was refunded.");
const second = await retain.runs.start("clerk", refund);
await retain.runs.reject("clerk", "desk", second.run_id, callOf(second));
assert.equal(await outputOf(second.run_id), "It was rejected.");
const third = await retain.runs.start("clerk", refund);
await retain.runs.cancel("clerk", "desk", third.run_id, { reason: "the customer called" });
assert.equal(await outputOf(third.run_id), null);
const cancelled = await retain.runs.get("clerk", "desk", third.run_id);
assert.ok(hasEnded(cancelled) && cancelled.status === "cancelled");
const retried = await retain.runs.retry("clerk", "desk", third.run_id);
const asks = await retain.runs.wait("clerk", "desk", retried.run_id, { pollS: 0.1 });
await retain.runs.approve("clerk", "desk", retried.run_id, callOf(asks));
assert.equal(await outputOf(retried.run_id), "It was refunded.");
const forked = await retain.runs.fork("clerk", "desk", retried.run_id, 1);
assert.equal(await outputOf(forked.run_id), "It was refunded.");
const fourth = await retain.runs.start("clerk", refund);
const ended = await retain.runs.cancelAll({ agent_type: "clerk", user_id: "ann", reason: "the desk is closed" });
assert.deepEqual(ended.map(({ run_id, status, error }) => [run_id, status, error]), [[fourth.run_id, "cancelled", null]]);
const background = await retain.runs.start("sdr", { input: "hello", instance_id: "desk", background: true });
assert.ok(hasEnded(await retain.runs.wait("sdr", "desk", background.run_id, { pollS: 0.1 })));

assert.ok((await retain.runs.costs({ since: "2026-01-01", limit: 1 }).all()).every((spent) => spent.runs > 0));

const daily = { agent_type: "sdr", input: "Who answered?", cron: "30 8 * * MON-FRI", timezone: "Europe/Zurich" };
const schedule = await retain.schedules.create(daily, { idempotencyKey: "daily" });
assert.deepEqual(await retain.schedules.create(daily, { idempotencyKey: "daily" }), schedule);
assert.equal((await retain.schedules.pause(schedule.schedule_id)).next_at_ms, null);
assert.deepEqual((await retain.schedules.list({ state: "paused" }).all()).map((one) => one.cron), [daily.cron]);
assert.deepEqual(await retain.schedules.resume(schedule.schedule_id), await retain.schedules.get(schedule.schedule_id));
await retain.schedules.delete(schedule.schedule_id);
assert.deepEqual(await retain.schedules.list().all(), []);

const webhook = await retain.webhooks.create({ url: "https://shop.example/hooks", events: ["run.failed"] });
assert.ok(webhook.secret !== (await retain.webhooks.rotate(webhook.webhook_id)).secret);
assert.deepEqual((await retain.webhooks.list({ limit: 1 }).all()).map((one) => one.url), ["https://shop.example/hooks"]);
assert.deepEqual(await retain.webhooks.deliveries(webhook.webhook_id, { status: "failed" }).all(), []);
await assert.rejects(retain.webhooks.replay(webhook.webhook_id, "msg_x"), RetainError);
await retain.webhooks.delete(webhook.webhook_id);

await retain.conversations.rename("clerk", "desk", "A refund");
assert.equal((await retain.conversations.get("clerk", "desk")).conversation?.title, "A refund");
const conversations = await retain.conversations.list({ user: "ann" }).all();
assert.deepEqual(conversations.map((one) => [one.instance_id, one.title]), [["desk", "A refund"]]);
const messages = await retain.conversations.messages("clerk", "desk", { order: "asc", limit: 1 }).all();
assert.equal(messages[0]?.content, "refund AB-1");
assert.ok((await retain.agents.list({ limit: 2 }).all()).some((agent) => agent.agent_type === "sdr"));
assert.deepEqual((await retain.agents.get("sdr")).definition, null);

const guide = { description: "Answers guests.", instructions: "Be brief.", model: { script: "sdr" } };
const checked = await retain.agents.check("guide", { ...guide, delegates: ["nobody"] });
assert.deepEqual([checked.valid, checked.problems.map((one) => one.pointer)], [false, ["/delegates/0"]]);
assert.equal((await retain.agents.define("guide", guide, { ifMatch: 0 })).version, 1);
await assert.rejects(retain.agents.define("guide", { ...guide, instructions: "Be long." }, { ifMatch: 0 }), { code: "agent_changed" });
const changed = await retain.agents.define("guide", { ...guide, instructions: "Be kind." }, { ifMatch: 1 });
assert.deepEqual([changed.version, changed.added], [2, true]);
assert.equal((await retain.agents.get("guide")).version, 2);
await assert.rejects(retain.agents.rollBack("guide", 1, { ifMatch: 1 }), { code: "agent_changed" });
assert.equal((await retain.agents.rollBack("guide", 1)).restored_from, 1);
assert.equal((await retain.agents.version("guide", 3)).definition?.instructions, "Be brief.");
await assert.rejects(retain.agents.delete("guide", { ifMatch: 2 }), { code: "agent_changed" });
await retain.agents.delete("guide");
const versions = await retain.agents.versions("guide", { limit: 2 }).all();
assert.deepEqual(versions.map((one) => [one.version, one.deleted]), [[4, true], [3, false], [2, false], [1, false]]);

const { id } = await retain.memories.store({ content: "Ann drinks tea.", user_id: "ann", metadata: { source: "crm" } });
await retain.memories.store({ content: "Ann lives in Porto.", user_id: "ann" });
const filtered = await retain.memories.list({ user_id: "ann", filter: { source: "crm" } }).all();
assert.deepEqual(filtered.map((memory) => memory.id), [id]);
assert.equal((await retain.memories.update(id, { content: "Ann drinks coffee." })).content, "Ann drinks coffee.");
const changedMemory = await retain.memories.get(id);
assert.equal(changedMemory.events.length, 2);
assert.ok(await retain.memories.update(id, { importance: 0.9 }, { ifMatch: changedMemory.last_event_id }));
await assert.rejects(retain.memories.update(id, { importance: 0.1 }, { ifMatch: changedMemory.last_event_id }), { code: "memory_changed" });
await retain.memories.delete(id);
const pages: number[] = [];
for await (const page of retain.memories.list({ user_id: "ann", limit: 1 }).pages()) pages.push(page.length);
assert.deepEqual(pages, [1]);
const spoken = [{ speaker: "Ann", content: "I live in Lisbon.", at_ms: 1_700_000_000_000 }];
const job = await retain.memories.ingest({ conversation: "mail-1", user_id: "ann", messages: spoken });
assert.equal((await retain.memories.ingestJob(job.job_id)).state, "completed");

await retain.users.put("ann", { name: "Ann" });
assert.equal((await retain.users.get("ann")).name, "Ann");
assert.deepEqual((await retain.users.list().all()).map((user) => user.id), ["ann"]);
const { token } = await retain.tokens.create({ user: "ann" });
const browser = new Retain({ url, tenant, key: token });
const events = browser.runs.stream("sdr", { input: "hello", instance_id: "desk" });
for await (const event of events) if (event.name === "run.started") break;
const rest = browser.runs.follow("sdr", events.instanceId!, events.runId!, { lastEventId: events.lastEventId! });
for await (const _ of rest);
assert.equal(rest.result?.status, "completed");
await assert.rejects(browser.memories.recall({ query: "tea" }), (error) => {
  return error instanceof RetainError && error.code === "token_not_allowed" && error.status === 403;
});
await retain.conversations.delete("clerk", "desk");
await assert.rejects(retain.conversations.get("clerk", "desk"), { status: 404 });

const picture = await retain.attachments.upload(new TextEncoder().encode("a note"), { mediaType: "text/plain" });
assert.deepEqual(await retain.attachments.get(picture.id), picture);
assert.equal(picture.name, "file.txt");
