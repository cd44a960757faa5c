/**
 * The vectors in memory, and exact search over them.
 *
 * Each namespace has a matrix of its own without gaps: a query in a namespace reads only that one, from start to end.
 * Rows are unit vectors of 32-bit floats, so cosine similarity is a dot product; 100,000 rows of 256 take
 * 102 MB, which a local workerd does not limit. (A Worker on Cloudflare has 128 MB, and Vectorize itself instead of this.)
 * Narrower numbers would halve that, and cost the exact scores that tests compare.
 */

import { Best } from "./best.js";

const BLOCK_ROWS = 1024;
const FIRST_ROWS = 16;
const LANES = 4;

/** Return the vector scaled to length one, padded with zeros to whole lanes. A zero vector stays zero. */
export function unit(values) {
  const scaled = new Float64Array(stride(values.length));
  let squares = 0;
  for (const value of values) squares += value * value;
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
  #spaces = new Map(); // namespace, or null, to Space
  #homes = new Map(); // id to Space

  constructor(dimensions) {
    this.#dimensions = dimensions;
  }

  get size() {
    return this.#homes.size;
  }

  /** Add the vector, replacing any of the same id in whatever namespace. cells: its indexed values, by the property's position. */
  put(id, namespace, values, cells) {
    this.remove(id);
    let space = this.#spaces.get(namespace);
    if (!space) this.#spaces.set(namespace, (space = new Space(namespace, stride(this.#dimensions))));
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
   * namespace: null searches all namespaces.
   */
  search(query, namespace, conditions, topK) {
    const best = new Best(topK);
    const spaces = namespace === null ? this.#spaces.values() : [this.#spaces.get(namespace)];
    for (const space of spaces) space?.search(query, conditions, best);
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

  constructor(namespace, width) {
    this.namespace = namespace;
    this.#width = width;
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
    if (last % BLOCK_ROWS === 0) this.#blocks.pop();
  }

  search(query, conditions, best) {
    const width = this.#width;
    for (let row = 0; row < this.size; row++) {
      const cells = this.#cells[row];
      if (!conditions.every(([place, test]) => test(cells[place]))) continue;
      const score = dot(this.#blocks[Math.floor(row / BLOCK_ROWS)], (row % BLOCK_ROWS) * width, query, width);
      best.offer(this.#ids[row], score, this.namespace);
    }
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
