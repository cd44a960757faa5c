/**
 * Metadata filters: which properties are indexed, and which rows a filter matches.
 *
 * Source: https://developers.cloudflare.com/vectorize/reference/metadata-filtering/
 */

import { refusal } from "./rules.js";
import { byteLength, compareText, truncated } from "./text.js";

const MAX_FILTER_BYTES = 2048;
const MAX_KEY_CHARACTERS = 512;
const UPPER = ["$lt", "$lte"];
const LOWER = ["$gt", "$gte"];
const ranges = (accepts) => (want) => (got) => typeof got === typeof want && accepts(order(got, want));
const TESTS = {
  $eq: (want) => (got) => got === want,
  $ne: (want) => (got) => got !== want,
  $in: (wanted) => (got) => wanted.includes(got),
  $nin: (wanted) => (got) => !wanted.includes(got),
  $lt: ranges((sign) => sign < 0),
  $lte: ranges((sign) => sign <= 0),
  $gt: ranges((sign) => sign > 0),
  $gte: ranges((sign) => sign >= 0),
};

/**
 * Return what the metadata indexes keep of the metadata: property to value, strings cut to 64 bytes.
 * A value whose type is not its index's is left out. indexes: property to "string", "number" or "boolean".
 */
export function indexed(metadata, indexes) {
  const kept = {};
  for (const [property, type] of Object.entries(indexes)) {
    const value = property.split(".").reduce((inner, key) => inner?.[key], metadata ?? {});
    if (typeof value === type) kept[property] = type === "string" ? truncated(value) : value;
  }
  return kept;
}

/**
 * Check the filter and return its conditions: [position of the property in `properties`, test of the indexed value]. Equal
 * filters have equal `key`s.
 *
 * A property without an index matches nothing, whatever the operator: then the result is null. A row without a value
 * in the index counts as null, so only `$ne`, `$nin` and `$eq: null` match it. Both are undocumented.
 */
export function conditions(filter, properties) {
  const rules = Object.entries(checkedFilter(filter)).flatMap(([property, condition]) =>
    Object.entries(operators(property, condition)).map(([operator, want]) => [
      properties.indexOf(property),
      TESTS[operator](Array.isArray(want) ? want.map(comparable) : comparable(want)),
    ]),
  );
  return rules.some(([place]) => place < 0) ? null : Object.assign(rules, { key: JSON.stringify(filter) });
}

function checkedFilter(filter) {
  if (typeof filter !== "object" || Array.isArray(filter) || Object.keys(filter).length === 0) {
    throw refused("it must be an object that is not empty");
  }
  const bytes = byteLength(JSON.stringify(filter));
  if (bytes >= MAX_FILTER_BYTES) throw refused(`it must be less than ${MAX_FILTER_BYTES} bytes, got ${bytes} bytes`);
  for (const key of Object.keys(filter)) {
    if (key.startsWith("$") || key.includes('"') || key.length > MAX_KEY_CHARACTERS || key.split(".").includes("")) {
      throw refused(`the key ${JSON.stringify(key)} is not allowed`);
    }
  }
  return filter;
}

/** Return the condition as operators: a bare value means `$eq`. */
function operators(property, condition) {
  if (isScalar(condition)) return { $eq: condition };
  const names = typeof condition === "object" && !Array.isArray(condition) ? Object.keys(condition) : [];
  if (names.length === 0) throw refused(`the condition on ${property} is neither a value nor an operator`);
  for (const name of names) {
    if (!Object.hasOwn(TESTS, name)) throw refused(`unknown operator ${name} on ${property}`);
    const want = condition[name];
    const isRange = UPPER.includes(name) || LOWER.includes(name);
    const fits = ["$in", "$nin"].includes(name)
      ? Array.isArray(want) && want.every(isScalar)
      : isScalar(want) && (!isRange || typeof want === "string" || typeof want === "number");
    if (!fits) throw refused(`${name} on ${property} has a value of the wrong type`);
  }
  const isWindow = names.length === 2 && names.some((n) => UPPER.includes(n)) && names.some((n) => LOWER.includes(n));
  if (names.length > 1 && !isWindow) throw refused(`${names.join(" and ")} on ${property} cannot be combined`);
  return condition;
}

function isScalar(value) {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function comparable(value) {
  return typeof value === "string" ? truncated(value) : value;
}

function order(a, b) {
  return typeof a === "string" ? compareText(a, b) : a - b;
}

function refused(reason) {
  return refusal("VECTOR_QUERY", `invalid filter: ${reason}`);
}
