/**
 * The vectors in memory, and exact search over them.
 *
 * Each namespace has a matrix of its own without gaps: a query in a namespace reads only that one, from start to end.
 * Rows are unit vectors of 32-bit floats, so cosine similarity is a dot product; 100,000 rows of 256 take
 * 102 MB, which a local workerd does not limit. (A Worker on Cloudflare has 128 MB, and Vectorize itself instead of this.)
 * Narrower numbers would halve that, and cost the exact scores that tests compare.
 */

import { Best, Least } from "./best.js";
import { Quick } from "./quick.js";

const BLOCK_ROWS = 1024;
const QUICK_ROWS = 2 * BLOCK_ROWS; // a namespace of more rows is scanned as bytes first
const ROUNDING = 1e-6; // more than 32-bit floats and the sums of a product leave out
const MASKS = 8; // filters whose rows are kept
const FIRST_ROWS = 16;
const LANES = 4;

/** Return the vector scaled to length one, padded with zeros to whole lanes. A zero vector stays zero. */
export function unit(values) {
  const scaled = new Float64Array(stride(values.length));
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += values[i] * values[i];
  const scale = squares > 0 ? 1 / Math.sqrt(squares) : 0;
  for (let i = 0; i < values.length; i++) scaled[i] = values[i] * scale;
  return scaled;
}

function stride(dimensions) {
  return Math.ceil(dimensions / LANES) * LANES;
}

/** All vectors of an index. */
export class Matrix {
  #dimensions;
  #quick;
  #spaces = new Map(); // namespace, or null, to Space
  #homes = new Map(); // id to Space

  constructor(dimensions) {
    this.#dimensions = dimensions;
    this.#quick = new Quick(dimensions, BLOCK_ROWS);
  }

  get size() {
    return this.#homes.size;
  }

  /** Add the vector, replacing any of the same id in whatever namespace. cells: its indexed values, by the property's position. */
  put(id, namespace, values, cells) {
    this.remove(id);
    let space = this.#spaces.get(namespace);
    if (!space) this.#spaces.set(namespace, (space = new Space(namespace, stride(this.#dimensions), this.#quick)));
    space.push(id, unit(values), cells);
    this.#homes.set(id, space);
  }

  /** Remove the vector. An absent id changes nothing. */
  remove(id) {
    const space = this.#homes.get(id);
    if (!space) return;
    this.#homes.delete(id);
    space.drop(id);
    if (space.size === 0) this.#spaces.delete(space.namespace);
  }

  /**
   * Return the nearest rows that meet every condition, best first, ties by id: [{id, score, namespace}].
   * namespace: null searches all namespaces. conditions: with a `key` that says which they are.
   */
  search(query, namespace, conditions, topK) {
    const best = new Best(topK);
    const spaces = namespace === null ? this.#spaces.values() : [this.#spaces.get(namespace)];
    for (const space of spaces) space?.search(query, conditions, best, topK);
    return best.ranked();
  }
}

/** The vectors of one namespace, in rows 0 to size - 1. */
class Space {
  #width;
  #blocks = [];
  #ids = [];
  #cells = [];
  #rows = new Map();
  #masks = new Map(); // key of conditions to Mask
  #quick;
  #bytes = []; // blocks of rows as bytes; none while the namespace is small
  #scales = [];
  #errors = [];

  constructor(namespace, width, quick) {
    this.namespace = namespace;
    this.#width = width;
    this.#quick = quick;
  }

  get size() {
    return this.#ids.length;
  }

  push(id, vector, cells) {
    const row = this.size;
    this.#reserve(row);
    this.#at(row).set(vector);
    this.#ids.push(id);
    this.#cells.push(cells);
    this.#rows.set(id, row);
    for (const mask of this.#masks.values()) mask.push(cells);
    if (this.#bytes.length > 0) this.#shorten(row);
    else if (this.size > QUICK_ROWS) for (let earlier = 0; earlier < this.size; earlier++) this.#shorten(earlier);
  }

  /** Remove a row; the last one moves to its index. */
  drop(id) {
    const row = this.#rows.get(id);
    const last = this.size - 1;
    this.#rows.delete(id);
    if (row !== last) {
      this.#at(row).set(this.#at(last));
      this.#ids[row] = this.#ids[last];
      this.#cells[row] = this.#cells[last];
      this.#rows.set(this.#ids[row], row);
    }
    this.#ids.pop();
    this.#cells.pop();
    for (const mask of this.#masks.values()) mask.drop(row);
    if (last % BLOCK_ROWS === 0) this.#blocks.pop();
    if (this.#bytes.length > 0) this.#forget(row, last);
  }

  search(query, conditions, best, topK) {
    const mask = this.#mask(conditions);
    if (this.#bytes.length === 0) {
      for (let row = 0; row < this.size; row++) if (mask === null || mask.rows[row]) this.#offer(row, query, best);
      return;
    }
    const [scale, left] = this.#quick.ask(query);
    const near = new Float64Array(this.size);
    const least = new Least(topK);
    for (const [number, block] of this.#bytes.entries()) {
      const start = number * BLOCK_ROWS;
      const products = this.#quick.scan(block, Math.min(BLOCK_ROWS, this.size - start));
      for (let row = start, at = 0; at < products.length; row++, at++) {
        if (mask !== null && !mask.rows[row]) {
          near[row] = -Infinity;
          continue;
        }
        const error = this.#errors[row] + (1 + this.#errors[row]) * left + ROUNDING;
        const score = products[at] * scale * this.#scales[row];
        near[row] = score + error;
        least.offer(score - error);
      }
    }
    // At least topK rows are as near as `least.value`: only what may be as near is computed exactly.
    for (let row = 0; row < this.size; row++) {
      if (near[row] >= least.value && near[row] > -Infinity) this.#offer(row, query, best);
    }
  }

  #offer(row, query, best) {
    const width = this.#width;
    const score = dot(this.#blocks[Math.floor(row / BLOCK_ROWS)], (row % BLOCK_ROWS) * width, query, width);
    best.offer(this.#ids[row], score, this.namespace);
  }

  /** Return the rows that meet the conditions; null for all. */
  #mask(conditions) {
    if (conditions.length === 0) return null;
    const known = this.#masks.get(conditions.key);
    if (known) return known;
    if (this.#masks.size >= MASKS) this.#masks.delete(this.#masks.keys().next().value);
    const mask = new Mask(conditions);
    for (const cells of this.#cells) mask.push(cells);
    this.#masks.set(conditions.key, mask);
    return mask;
  }

  /** Keep a row as bytes as well. */
  #shorten(row) {
    const block = Math.floor(row / BLOCK_ROWS);
    if (block === this.#bytes.length) this.#bytes.push(this.#quick.take());
    const [scale, error] = this.#quick.write(this.#bytes[block], row % BLOCK_ROWS, this.#at(row));
    this.#scales[row] = scale;
    this.#errors[row] = error;
  }

  /** Move the bytes of the last row to another one, or remove them. */
  #forget(row, last) {
    const block = (one) => this.#bytes[Math.floor(one / BLOCK_ROWS)];
    if (row !== last) this.#quick.copy(block(last), last % BLOCK_ROWS, block(row), row % BLOCK_ROWS);
    this.#scales[row] = this.#scales[last];
    this.#errors[row] = this.#errors[last];
    this.#scales.length = this.#errors.length = last;
    if (last % BLOCK_ROWS === 0) this.#quick.give(this.#bytes.pop());
  }

  #at(row) {
    const start = (row % BLOCK_ROWS) * this.#width;
    return this.#blocks[Math.floor(row / BLOCK_ROWS)].subarray(start, start + this.#width);
  }

  /** Make room for the row. Only a space's first block grows, so many small namespaces cost little. */
  #reserve(row) {
    const block = Math.floor(row / BLOCK_ROWS);
    const present = this.#blocks[block];
    if (present && (row % BLOCK_ROWS) * this.#width < present.length) return;
    const rows = block > 0 ? BLOCK_ROWS : present ? (present.length / this.#width) * 2 : FIRST_ROWS;
    const grown = new Float32Array(rows * this.#width);
    if (present) grown.set(present);
    this.#blocks[block] = grown;
  }
}

/** Which rows meet some conditions: 1 for each that does. */
class Mask {
  #conditions;
  #count = 0;

  constructor(conditions) {
    this.#conditions = conditions;
    this.rows = new Uint8Array(FIRST_ROWS);
  }

  push(cells) {
    if (this.#count === this.rows.length) {
      const grown = new Uint8Array(2 * this.#count);
      grown.set(this.rows);
      this.rows = grown;
    }
    this.rows[this.#count++] = this.#conditions.every(([place, test]) => test(cells[place])) ? 1 : 0;
  }

  /** Remove a row; the last one moves to its index. */
  drop(row) {
    this.rows[row] = this.rows[--this.#count];
  }
}

/** Return the cosine similarity of two unit vectors: the row that begins at `start` in the block, and the query. */
function dot(block, start, query, width) {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  for (let i = 0, at = start; i < width; i += LANES, at += LANES) {
    a += block[at] * query[i];
    b += block[at + 1] * query[i + 1];
    c += block[at + 2] * query[i + 2];
    d += block[at + 3] * query[i + 3];
  }
  // Rounding to 32 bits may push the similarity of equal directions out of its bounds.
  return Math.max(-1, Math.min(1, a + b + (c + d)));
}
