// Loaded into wrangler before its own code (tools/offline_runtime.py): corrects how the local server reads a request.
//
// Miniflare's entry believes the header MF-Original-URL of any client, instead of Host, and leaves no trace of either. A
// page whose name was made to point to 127.0.0.1 may set that header and would pass for the developer. It also keeps a
// CF-Connecting-IP that the client wrote. Both are right only between wrangler's own two processes, which prove themselves
// with a secret; wrangler steers its proxy under the name "dummy", which no rule takes for this machine.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const ENTRY = path.join("miniflare", "dist", "src", "workers", "core", "entry.worker.js");
const READS = "function getUserRequest(request, env, clientIp) {\n";
const CHECKS = `${READS}  if (request.headers.get(CoreHeaders.PROXY_SHARED_SECRET) === null) {
    let named = request.headers.get(CoreHeaders.ORIGINAL_URL);
    if (named !== null && !named.startsWith("http://dummy/"))
      throw new HttpError(400, "Disallowed header in request: MF-Original-URL");
    request.headers.delete("CF-Connecting-IP");
  }
`;

const readFileSync = fs.readFileSync;
fs.readFileSync = function read(file, ...options) {
  const content = readFileSync.call(fs, file, ...options);
  if (typeof content !== "string" || !String(file).endsWith(ENTRY)) return content;
  if (content.split(READS).length !== 2) {
    throw new Error(`tools/local_entry.cjs does not fit this version of Miniflare: ${file}`);
  }
  return content.replace(READS, () => CHECKS);
};
