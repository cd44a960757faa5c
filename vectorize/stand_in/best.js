/** The best few of many scored ids: a bounded heap with the worst at the root. */

import { compareText } from "./text.js";

/** Compare matches for best-first order: higher scores, then smaller ids. */
function compare(a, b) {
  return b.score - a.score || compareText(a.id, b.id);
}

export class Best {
  #limit;
  #heap = [];

  constructor(limit) {
    this.#limit = limit;
  }

  /** Keep the id if it is among the best seen. */
  offer(id, score, namespace) {
    const heap = this.#heap;
    if (heap.length < this.#limit) {
      heap.push({ id, score, namespace });
      this.#rise();
    } else if (score >= heap[0].score && compare({ id, score }, heap[0]) < 0) {
      heap[0] = { id, score, namespace };
      this.#sink();
    }
  }

  /** Return what was kept, best first. */
  ranked() {
    return this.#heap.toSorted(compare);
  }

  #rise() {
    const heap = this.#heap;
    let at = heap.length - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (compare(heap[parent], heap[at]) > 0) return;
      [heap[parent], heap[at]] = [heap[at], heap[parent]];
      at = parent;
    }
  }

  #sink() {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && compare(heap[child], heap[worst]) > 0) worst = child;
      }
      if (worst === at) return;
      [heap[worst], heap[at]] = [heap[at], heap[worst]];
      at = worst;
    }
  }
}

/** The least of the greatest few of many numbers: a heap of the greatest, with that one at the root. */
export class Least {
  #limit;
  #heap = [];

  constructor(limit) {
    this.#limit = limit;
  }

  /** The least of them; -Infinity while there are fewer. */
  get value() {
    return this.#heap.length < this.#limit ? -Infinity : this.#heap[0];
  }

  offer(value) {
    const heap = this.#heap;
    if (heap.length < this.#limit) {
      heap.push(value);
      if (heap.length === this.#limit) heap.sort((a, b) => a - b);
    } else if (value > heap[0]) {
      let at = 0;
      for (let child = 1; child < heap.length; child = 2 * at + 1) {
        if (child + 1 < heap.length && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[at] = heap[child];
        at = child;
      }
      heap[at] = value;
    }
  }
}
