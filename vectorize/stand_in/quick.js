/**
 * Rows as bytes, which are scanned four times as fast as 32-bit floats, with the bound of what that costs in precision.
 *
 * A row is kept as numbers of -127 to 127 and a scale. Its product with a query, computed so, differs from the exact one by
 * no more than `error` says. So the rows that may be among the best few are known, and only those are computed exactly.
 */

import module from "./scan.wasm";

const PAGE_BYTES = 65536;
const LARGEST = 127;
const LANES = 16;

/** Rows of one width in WebAssembly's memory, in blocks. */
export class Quick {
  #width;
  #blockRows;
  #exports = new WebAssembly.Instance(module).exports;
  #query;
  #out;
  #free = [];

  /** dimensions: of a vector. blockRows: rows of a block. */
  constructor(dimensions, blockRows) {
    this.#width = Math.ceil(dimensions / LANES) * LANES;
    this.#blockRows = blockRows;
    this.#query = this.#reserve(2 * this.#width);
    this.#out = this.#reserve(4 * blockRows);
  }

  /** Return a block of rows: where it begins in the memory. */
  take() {
    return this.#free.pop() ?? this.#reserve(this.#width * this.#blockRows);
  }

  /** Give a block back. */
  give(block) {
    this.#free.push(block);
  }

  /** Write a row; return its scale, and the length of what the bytes leave out. */
  write(block, row, vector) {
    const bytes = new Int8Array(this.#exports.memory.buffer, block + row * this.#width, this.#width);
    return rounded(vector, bytes);
  }

  /** Copy a row to another place. */
  copy(fromBlock, fromRow, toBlock, toRow) {
    const start = fromBlock + fromRow * this.#width;
    new Uint8Array(this.#exports.memory.buffer).copyWithin(toBlock + toRow * this.#width, start, start + this.#width);
  }

  /** Set the query of the next scans; return its scale, and the length of what is left out of it. */
  ask(vector) {
    const values = new Int16Array(this.#exports.memory.buffer, this.#query, this.#width);
    return rounded(vector, values);
  }

  /** Return the products of the first rows of a block and the query, without their scales. Valid until the next call. */
  scan(block, rows) {
    this.#exports.scan(block, block + rows * this.#width, this.#width, this.#query, this.#out);
    return new Int32Array(this.#exports.memory.buffer, this.#out, rows);
  }

  #reserve(bytes) {
    return this.#exports.memory.grow(Math.ceil(bytes / PAGE_BYTES)) * PAGE_BYTES;
  }
}

/** Write a vector as whole numbers; return [scale, the length of what they leave out]. */
function rounded(vector, into) {
  let largest = 0;
  for (let i = 0; i < vector.length; i++) largest = Math.max(largest, Math.abs(vector[i]));
  const scale = largest / LARGEST;
  let squares = 0;
  for (let i = 0; i < vector.length; i++) {
    const whole = scale > 0 ? Math.round(vector[i] / scale) : 0;
    into[i] = whole;
    const left = vector[i] - whole * scale;
    squares += left * left;
  }
  return [scale, Math.sqrt(squares)];
}
