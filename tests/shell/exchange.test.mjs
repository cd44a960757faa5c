// The module of JavaScript that sends requests. MODULE: its file. Node's `fetch` is the one that it is given on workerd, too.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import test, { after, before } from "node:test";
import { gzipSync } from "node:zlib";

const { exchange, send } = await import(process.env.MODULE);
const HEADERS = JSON.stringify({ "content-type": "text/plain", "x-one": "1" });
const MINUTE_MS = 60_000;
let server;
let url;
const PACKED = gzipSync("x".repeat(1_000));
const seen = [];
const hungUp = [];

before(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (piece) => (body += piece));
    request.on("end", () => {
      const path = request.url;
      seen.push({ path, method: request.method, headers: request.headers, body });
      if (path === "/small") response.writeHead(201, { "content-length": "5" }).end("small");
      else if (path === "/large") response.writeHead(200, { "content-length": "12" }).end("x".repeat(12));
      else if (path === "/unannounced") response.write("small"), response.end();
      else if (path === "/exact") response.writeHead(200, { "content-length": "10" }).end("x".repeat(10));
      else if (path === "/packed") response.writeHead(200, { "content-length": `${PACKED.length}`, "content-encoding": "gzip" }).end(PACKED);
      else if (path === "/cut") response.writeHead(418, { "content-length": "5" }).write("sm", () => response.destroy());
      else if (path === "/moved") response.writeHead(302, { location: "/small", "content-length": "0" }).end();
      else response.on("close", () => hungUp.push(path));
    });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  url = `http://127.0.0.1:${server.address().port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

const until = async (met) => {
  while (!met()) await new Promise(setImmediate);
};
const text = (content) => new TextDecoder().decode(content);

test("a small answer comes with its content, and what was sent arrives", async () => {
  const { response, content, size } = await exchange("PUT", `${url}/small`, HEADERS, "a body", MINUTE_MS, 10).answer;
  assert.deepEqual([response.status, size, text(content)], [201, 5, "small"]);
  const { method, headers, body } = seen.at(-1);
  assert.deepEqual([method, headers["x-one"], body], ["PUT", "1", "a body"]);
});

test("bytes are sent as they are", async () => {
  await exchange("POST", `${url}/small`, HEADERS, new TextEncoder().encode("bytes"), MINUTE_MS, 10).answer;
  assert.equal(seen.at(-1).body, "bytes");
});

for (const path of ["/large", "/unannounced"]) {
  test(`the content of ${path} is left to the caller`, async () => {
    const { response, size } = await exchange("GET", url + path, HEADERS, undefined, MINUTE_MS, 10).answer;
    assert.equal(size, -1);
    assert.equal((await response.text()).length, path === "/large" ? 12 : 5);
  });
}

test("what is as large as it may be at once comes with its content", async () => {
  const { content, size } = await exchange("GET", `${url}/exact`, HEADERS, undefined, MINUTE_MS, 10).answer;
  assert.deepEqual([size, text(content)], [10, "x".repeat(10)]);
});

test("an encoded answer is longer than was announced, and is left to the caller", async () => {
  const { response, size } = await exchange("GET", `${url}/packed`, HEADERS, undefined, MINUTE_MS, 100).answer;
  assert.ok(PACKED.length < 100);
  assert.deepEqual([size, (await response.text()).length], [-1, 1_000]);
});

test("an answer whose content breaks off is a rejection that has its status", async () => {
  const { answer } = exchange("GET", `${url}/cut`, HEADERS, undefined, MINUTE_MS, 10);
  await assert.rejects(answer, (error) => error.answered === 418);
});

test("the size is that of the content: an answer to HEAD has none, whatever it announces", async () => {
  const { content, size } = await exchange("HEAD", `${url}/small`, HEADERS, undefined, MINUTE_MS, 10).answer;
  assert.deepEqual([size, text(content)], [0, ""]);
});

test("a redirect is not followed", async () => {
  const { response, size } = await exchange("GET", `${url}/moved`, HEADERS, undefined, MINUTE_MS, 10).answer;
  assert.deepEqual([response.status, size], [302, 0]);
});

for (const [name, begin] of [["send", send], ["exchange", exchange]]) {
  test(`what ${name} has begun can be given up before it is answered, and the server notices`, async () => {
    const begun = begin("GET", `${url}/hangs-${name}`, HEADERS, undefined, MINUTE_MS, 10);
    const ended = assert.rejects(begun.answer, { name: "AbortError" });
    await until(() => seen.some(({ path }) => path === `/hangs-${name}`));
    begun.giveUp();
    await ended;
    await until(() => hungUp.includes(`/hangs-${name}`));
  });

  test(`the time of ${name} ends it`, async () => {
    const begun = begin("GET", `${url}/late`, HEADERS, undefined, 20, 10);
    await assert.rejects(begun.answer, { name: "TimeoutError" });
  });

  test(`an address that is none is a rejection of ${name}, not an error of the call`, async () => {
    await assert.rejects(begin("GET", "nowhere", HEADERS, undefined, MINUTE_MS, 10).answer, { name: "TypeError" });
  });
}
