/** One index: what Vectorize promises, with SQLite for storage and a matrix for search. */

import { conditions, indexed } from "./filter.js";
import { Matrix, unit } from "./matrix.js";
import { checkIds, checkQueryVector, checkVectors, queryOptions, refusal } from "./rules.js";

export class Index {
  #storage;
  #transaction;
  #config;
  #clock;
  #properties;
  #matrix;

  /**
   * Open the index and load its vectors. config: as `configuration` returns it. transaction: runs a function
   * atomically. clock: returns the time in milliseconds.
   * Throws when the stored vectors have other dimensions: as on the platform, an index's dimensions never change.
   */
  constructor(storage, transaction, config, clock) {
    this.#storage = storage;
    this.#transaction = transaction;
    this.#config = config;
    this.#clock = clock;
    this.#properties = Object.keys(config.metadataIndexes);
    this.#matrix = new Matrix(config.dimensions);
    const made = storage.fact("dimensions");
    if (made === null) storage.setFact("dimensions", String(config.dimensions));
    else if (Number(made) !== config.dimensions) {
      const text = `the index was made with ${made} dimensions, DIMENSIONS says ${config.dimensions}`;
      throw refusal("INDEX_GET", `${text}: delete the local state, or set another INDEX_NAME`);
    }
    for (const entry of storage.all()) this.#show(entry);
  }

  query(vector, options) {
    checkQueryVector(vector, this.#config.dimensions);
    return this.#search("VECTOR_QUERY", vector, queryOptions(options));
  }

  queryById(id, options) {
    const asked = queryOptions(options);
    this.settle();
    const entry = this.#storage.get(id);
    if (!entry) throw refusal("VECTOR_QUERY", `there is no vector with id="${id}"`);
    return this.#search("VECTOR_QUERY", entry.values, asked);
  }

  upsert(vectors) {
    return this.#write("VECTOR_UPSERT", "upsert", vectors);
  }

  insert(vectors) {
    return this.#write("VECTOR_INSERT", "insert", vectors);
  }

  getByIds(ids) {
    checkIds("VECTOR_GET", ids);
    this.settle();
    return [...new Set(ids)]
      .map((id) => this.#storage.get(id))
      .filter((entry) => entry !== null)
      .map(({ id, namespace, values, metadata }) => ({
        id,
        values: Array.from(values),
        ...(namespace !== null && { namespace }),
        ...(metadata !== null && { metadata: JSON.parse(metadata) }),
      }));
  }

  deleteByIds(ids) {
    checkIds("VECTOR_DELETE", ids);
    return this.#mutate(
      "delete",
      ids.map((id) => ({ id })),
    );
  }

  describe() {
    this.settle();
    const at = this.#storage.fact("processedUpToMs");
    return {
      dimensions: this.#config.dimensions,
      vectorCount: this.#matrix.size,
      processedUpToDatetime: at === null ? null : new Date(Number(at)).toISOString(),
      processedUpToMutation: this.#storage.fact("processedUpToMutation"),
    };
  }

  /** Make due mutations visible. */
  settle() {
    const due = this.#storage.due(this.#clock());
    if (due.length === 0) return;
    this.#commit(due, () => this.#storage.forgetPending(due.at(-1).sequence));
  }

  #search(operation, vector, { topK, namespace, filter, returnValues, level }) {
    this.settle();
    const rules = filter === null ? [] : conditions(filter, this.#properties);
    const found = rules === null ? [] : this.#matrix.search(unit(vector), namespace, rules, topK);
    const matches = found.map(({ id, score, namespace: home }) => {
      const entry = returnValues || level !== "none" ? this.#storage.get(id) : null;
      return {
        id,
        score,
        ...(home !== null && { namespace: home }),
        ...(returnValues && { values: Array.from(entry.values) }),
        ...(level === "all" && { metadata: JSON.parse(entry.metadata ?? "{}") }),
        ...(level === "indexed" && { metadata: entry.indexed }),
      };
    });
    return { count: matches.length, matches };
  }

  #write(name, operation, vectors) {
    checkVectors(name, vectors, this.#config.dimensions);
    return this.#mutate(
      operation,
      vectors.map(({ id, values, namespace, metadata }) => ({
        id,
        namespace: namespace ?? null,
        values: Float32Array.from(values),
        metadata: metadata ? JSON.stringify(metadata) : null,
        indexed: indexed(metadata, this.#config.metadataIndexes),
      })),
    );
  }

  /** Apply the mutation now, or store it for later: mutations become visible in the order in which they were made. */
  #mutate(operation, entries) {
    this.settle();
    const now = this.#clock();
    const mutation = { id: crypto.randomUUID(), madeAtMs: now };
    const visibleAtMs = Math.max(now + this.#config.visibilityDelayMs, this.#storage.lastVisibleAtMs() ?? 0);
    const steps = (entries.length ? entries : [null]).map((entry) => ({ mutation, operation, entry }));
    if (visibleAtMs <= now) this.#commit(steps);
    else {
      this.#transaction(() => {
        for (const { entry } of steps) this.#storage.postpone(mutation, visibleAtMs, operation, entry);
      });
    }
    return { mutationId: mutation.id };
  }

  /** Apply the steps, all in SQLite first, so that a failure there leaves the matrix unchanged. */
  #commit(steps, then = () => {}) {
    const effects = [];
    this.#transaction(() => {
      for (const { operation, entry } of steps) {
        if (entry === null || (operation === "insert" && this.#storage.has(entry.id))) continue;
        if (operation === "delete") {
          this.#storage.delete(entry.id);
          effects.push(() => this.#matrix.remove(entry.id));
        } else {
          this.#storage.put(entry);
          effects.push(() => this.#show(entry));
        }
      }
      const { mutation } = steps.at(-1);
      this.#storage.setFact("processedUpToMutation", mutation.id);
      this.#storage.setFact("processedUpToMs", String(mutation.madeAtMs));
      then();
    });
    for (const effect of effects) effect();
  }

  #show({ id, namespace, values, indexed: kept }) {
    const cells = this.#properties.map((property) => kept[property] ?? null);
    this.#matrix.put(id, namespace, values, cells);
  }
}
