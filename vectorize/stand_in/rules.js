/**
 * What Vectorize refuses, and with which messages.
 *
 * Codes are given only where the platform was seen to use them; the other messages are this stand-in's own.
 * Source: https://developers.cloudflare.com/vectorize/platform/limits/
 */

import { byteLength } from "./text.js";

export const MAX_DIMENSIONS = 1536;
export const MAX_METADATA_INDEXES = 10;
const MAX_ID_BYTES = 64;
const MAX_NAMESPACE_BYTES = 64;
const MAX_METADATA_BYTES = 10 * 1024;
const MAX_UPSERT = 1000;
// These two are not in the list of limits, but the platform enforces them: "VECTOR_DELETE_ERROR (code = 40007):
// too many ids in payload; max id count is 100", and likewise VECTOR_GET_ERROR above 20.
const MAX_DELETE_IDS = 100;
const MAX_GET_IDS = 20;
const MAX_TOP_K = 100;
// The limits page says 20; the platform has been seen to allow 50. The stricter limit applies here.
const MAX_TOP_K_WITH_DATA = 20;
const DEFAULT_TOP_K = 5;
const METADATA_LEVELS = ["none", "indexed", "all"];

/**
 * Return the error that the binding would throw.
 * Source: https://github.com/cloudflare/workerd/blob/main/src/cloudflare/internal/vectorize-api.ts
 */
export function refusal(operation, text, code) {
  return new Error(`${operation}_ERROR${code === undefined ? "" : ` (code = ${code})`}: ${text}`);
}

/** Check a batch of vectors to write; throw a refusal that names the first fault. */
export function checkVectors(operation, vectors, dimensions) {
  if (!Array.isArray(vectors) || vectors.length === 0) {
    throw refusal(operation, "failed to parse upsert vectors request: expected at least one vector", 40023);
  }
  if (vectors.length > MAX_UPSERT) {
    throw refusal(operation, `too many vectors in payload; max is ${MAX_UPSERT}, got ${vectors.length}`, 40007);
  }
  for (const { id, values, namespace, metadata } of vectors) {
    checkId(operation, id);
    if (!isVector(values)) throw refusal(operation, `invalid vector for id="${id}": expected finite numbers`, 40023);
    if (values.length !== dimensions) {
      const text = `invalid vector for id="${id}", expected ${dimensions} dimensions, and got ${values.length} dimensions`;
      throw refusal(operation, text, 40012);
    }
    checkNamespace(operation, namespace);
    checkMetadata(operation, id, metadata);
  }
}

/** Check the ids of a `getByIds` or `deleteByIds`. */
export function checkIds(operation, ids) {
  if (!Array.isArray(ids)) throw refusal(operation, "expected a list of ids", 40026);
  const limit = operation === "VECTOR_GET" ? MAX_GET_IDS : MAX_DELETE_IDS;
  if (ids.length > limit) {
    throw refusal(operation, `too many ids in payload; max id count is ${limit}, got ${ids.length}`, 40007);
  }
  for (const id of ids) checkId(operation, id);
}

/** Check a query's vector. */
export function checkQueryVector(vector, dimensions) {
  const length = isVector(vector) ? vector.length : 0;
  if (length !== dimensions) {
    const text = `invalid query vector, expected ${dimensions} dimensions, and got ${length} dimensions`;
    throw refusal("VECTOR_QUERY", text, 40006);
  }
}

/** Return a query's options, checked and with defaults. Null means that an option is not given. */
export function queryOptions(options) {
  const { topK, namespace, filter, returnValues, returnMetadata } = options ?? {};
  const level = returnMetadata === true ? "all" : (returnMetadata ?? "none");
  if (!METADATA_LEVELS.includes(level)) {
    throw refusal("VECTOR_QUERY", "Failed to parse the request body as JSON: returnMetadata: expected value", 40026);
  }
  const count = topK ?? DEFAULT_TOP_K;
  if (!Number.isInteger(count) || count < 1) {
    throw refusal("VECTOR_QUERY", `Failed to parse the request body as JSON: topK: expected 1 or more, got ${count}`, 40026);
  }
  const heavy = Boolean(returnValues) || level === "all";
  const limit = heavy ? MAX_TOP_K_WITH_DATA : MAX_TOP_K;
  if (count > limit) {
    const when = heavy ? "with returnValues=true or returnMetadata=all, " : "";
    throw refusal("VECTOR_QUERY", `${when}max top K is ${limit}, but got ${count}`, 40025);
  }
  checkNamespace("VECTOR_QUERY", namespace);
  return { topK: count, namespace: namespace ?? null, filter: filter ?? null, returnValues: Boolean(returnValues), level };
}

function checkId(operation, id) {
  if (typeof id !== "string" || id === "") throw refusal(operation, "an id must be a string that is not empty", 40026);
  const bytes = byteLength(id);
  if (bytes > MAX_ID_BYTES) {
    throw refusal(operation, `id too long; max is ${MAX_ID_BYTES} bytes, got ${bytes} bytes`, 40008);
  }
}

function checkNamespace(operation, namespace) {
  if (namespace === undefined || namespace === null) return;
  if (typeof namespace !== "string") throw refusal(operation, "a namespace must be a string", 40026);
  const bytes = byteLength(namespace);
  if (bytes > MAX_NAMESPACE_BYTES) {
    throw refusal(operation, `namespace too long; max is ${MAX_NAMESPACE_BYTES} bytes, got ${bytes} bytes`);
  }
}

function checkMetadata(operation, id, metadata) {
  if (metadata === undefined || metadata === null) return;
  if (typeof metadata !== "object" || Array.isArray(metadata)) {
    throw refusal(operation, `the metadata of id="${id}" must be an object`, 40023);
  }
  checkKeys(operation, metadata);
  const bytes = byteLength(JSON.stringify(metadata));
  if (bytes > MAX_METADATA_BYTES) {
    throw refusal(operation, `metadata too large for id="${id}"; max is ${MAX_METADATA_BYTES} bytes, got ${bytes} bytes`, 40016);
  }
}

/** Source: https://developers.cloudflare.com/vectorize/best-practices/insert-vectors/#metadata */
function checkKeys(operation, metadata) {
  for (const [key, value] of Object.entries(metadata)) {
    if (key === "" || key.startsWith("$") || key.includes(".") || key.includes('"')) {
      throw refusal(operation, `invalid metadata key ${JSON.stringify(key)}: empty, starts with "$", or contains "." or '"'`);
    }
    if (value !== null && typeof value === "object" && !Array.isArray(value)) checkKeys(operation, value);
  }
}

function isVector(values) {
  const list = Array.isArray(values) || values instanceof Float32Array || values instanceof Float64Array;
  return list && values.every((value) => typeof value === "number" && Number.isFinite(value));
}
