/** Text, measured and ordered as Vectorize does it: in UTF-8. */

export const INDEXED_BYTES = 64;

const encoder = new TextEncoder();
const head = new Uint8Array(INDEXED_BYTES);

/** Return the length of the text in UTF-8 bytes. */
export function byteLength(text) {
  return encoder.encode(text).length;
}

/**
 * Return what a metadata index keeps of a string: its first 64 bytes, cut at a character boundary.
 * Source: https://developers.cloudflare.com/vectorize/reference/metadata-filtering/#metadata-indexes
 */
export function truncated(text) {
  // A UTF-16 unit is at most 3 bytes of UTF-8, so a short text needs no measuring.
  if (text.length * 3 <= INDEXED_BYTES) return text;
  return text.slice(0, encoder.encodeInto(text, head).read);
}

/** Compare two texts by code point, which is the order of their UTF-8 bytes. JavaScript's `<` compares UTF-16 units. */
export function compareText(a, b) {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    // A surrogate stands for a code point above every other unit.
    return surrogate(x) === surrogate(y) ? x - y : surrogate(x) ? 1 : -1;
  }
  return a.length - b.length;
}

function surrogate(unit) {
  return unit >= 0xd800 && unit <= 0xdfff;
}
