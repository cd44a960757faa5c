/** The stand-in's variables, as `vectorize/wrangler.toml` sets them. */

import { MAX_DIMENSIONS, MAX_METADATA_INDEXES } from "./rules.js";

/**
 * Return the configuration: {name, dimensions, metadataIndexes, visibilityDelayMs}.
 *
 * INDEX_NAME; DIMENSIONS: 1 to 1536; METADATA_INDEXES: property to "string", "number" or "boolean", at most ten;
 * VISIBILITY_DELAY_MS: how long a mutation stays invisible, 0 unless set.
 */
export function configuration(env) {
  const dimensions = Number(env.DIMENSIONS);
  if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > MAX_DIMENSIONS) {
    throw new Error(`DIMENSIONS must be 1 to ${MAX_DIMENSIONS}, not ${env.DIMENSIONS}`);
  }
  const metadataIndexes = env.METADATA_INDEXES ?? {};
  const types = Object.values(metadataIndexes);
  if (types.length > MAX_METADATA_INDEXES) {
    throw new Error(`an index has at most ${MAX_METADATA_INDEXES} metadata indexes, METADATA_INDEXES names ${types.length}`);
  }
  if (!types.every((type) => ["string", "number", "boolean"].includes(type))) {
    throw new Error("METADATA_INDEXES may have the types string, number and boolean");
  }
  const visibilityDelayMs = Number(env.VISIBILITY_DELAY_MS ?? 0);
  if (!(visibilityDelayMs >= 0)) throw new Error(`VISIBILITY_DELAY_MS must be 0 or more, not ${env.VISIBILITY_DELAY_MS}`);
  return { name: env.INDEX_NAME ?? "index", dimensions, metadataIndexes, visibilityDelayMs };
}
