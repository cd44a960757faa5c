import { notRetains } from "./errors.js";

/** One page of a list, and the cursor of the next one. */
export type Page<Item> = [items: readonly Item[], cursor: string | null | undefined];

/** A list. Iterating over it reads the next page when it is needed; nothing is read before. */
export class Pages<Item> implements AsyncIterable<Item> {
  constructor(private readonly read: (cursor: { cursor?: string }) => Promise<Page<Item>>) {}

  /** Yield every entry. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page;
  }

  /** Yield the entries of each page. */
  async *pages(): AsyncGenerator<readonly Item[], void, undefined> {
    let cursor: { cursor?: string } = {};
    for (;;) {
      const [items, following] = await this.read(cursor);
      if (!Array.isArray(items)) throw notRetains("it has no list");
      yield items;
      if (following === null || following === undefined) return;
      cursor = { cursor: following };
    }
  }

  /** Return every entry as an array: for lists that are known to be short. */
  async all(): Promise<Item[]> {
    const found: Item[] = [];
    for await (const item of this) found.push(item);
    return found;
  }
}
