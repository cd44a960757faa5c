// The TypeScript client as it is installed, and a server that answers what a test has prepared. PACKAGE: where it is installed.

import { pathToFileURL } from "node:url";

const installed = `${process.env.PACKAGE}/node_modules/retain-client/dist/`;
export const load = (name) => import(pathToFileURL(`${installed}${name}.js`).href);
const { Retain } = await load("index");

export const QUICK = { attempts: 3, firstPauseS: 0.001, longestPauseS: 0.01 };

export const problem = (status, code, headers = {}) =>
  new Response(JSON.stringify({ code, detail: "no", request_id: "r1", limit: 7 }), { status, headers });

export const streamed = (...pieces) =>
  new Response(
    new ReadableStream({
      start(controller) {
        for (const piece of pieces) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    }),
    { headers: { "content-type": "text/event-stream" } },
  );

/** Return a client whose server answers so, one after the other, and what it was sent. */
export function client(...answers) {
  const sent = [];
  const fetch = async (request) => {
    sent.push({ method: request.method, redirect: request.redirect, url: request.url, headers: request.headers, body: await request.text() });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next;
  };
  return { sent, retain: new Retain({ url: "https://retain.example", key: "k", tenant: "acme", retries: QUICK, fetch }) };
}

export const all = async (rows) => {
  const found = [];
  for await (const row of rows) found.push(row);
  return found;
};
