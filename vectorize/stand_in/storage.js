/** The tables of one index in its Durable Object's SQLite, and every statement that touches them. */

const SCHEMA = `
CREATE TABLE IF NOT EXISTS vectors (
  id TEXT PRIMARY KEY,
  namespace TEXT,
  vector BLOB NOT NULL,    -- 32-bit floats, as they were given
  metadata TEXT,           -- JSON
  indexed TEXT NOT NULL    -- JSON: what the metadata indexes that existed at its writing keep of the metadata
);
CREATE TABLE IF NOT EXISTS pending (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,
  mutation_id TEXT NOT NULL,
  made_at_ms INTEGER NOT NULL,
  visible_at_ms INTEGER NOT NULL,
  operation TEXT NOT NULL, -- insert, upsert or delete
  id TEXT,                 -- null: the mutation names no vector
  namespace TEXT,
  vector BLOB,
  metadata TEXT,
  indexed TEXT
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
`;
const PUT = "INSERT OR REPLACE INTO vectors (id, namespace, vector, metadata, indexed) VALUES (?, ?, ?, ?, ?)";
const ADD_PENDING = `
INSERT INTO pending (mutation_id, made_at_ms, visible_at_ms, operation, id, namespace, vector, metadata, indexed)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`;

export class Storage {
  #sql;

  constructor(sql) {
    this.#sql = sql;
    sql.exec(SCHEMA);
  }

  /** Write a vector. entry: {id, namespace, values (Float32Array), metadata (JSON or null), indexed (object)}. */
  put(entry) {
    const { id, namespace, values, metadata, indexed } = entry;
    this.#sql.exec(PUT, id, namespace, values.buffer, metadata, JSON.stringify(indexed));
  }

  delete(id) {
    this.#sql.exec("DELETE FROM vectors WHERE id = ?", id);
  }

  has(id) {
    return this.#sql.exec("SELECT 1 FROM vectors WHERE id = ?", id).toArray().length > 0;
  }

  /** Return the entry of the id, or null. */
  get(id) {
    const [row] = this.#sql.exec("SELECT * FROM vectors WHERE id = ?", id).toArray();
    return row ? entryOf(row) : null;
  }

  /** Yield every entry, one row in memory at a time. */
  *all() {
    for (const row of this.#sql.exec("SELECT * FROM vectors")) yield entryOf(row);
  }

  /** Postpone an operation of a mutation. entry: as for `put`, or {id} for a delete, or null. */
  postpone(mutation, visibleAtMs, operation, entry) {
    this.#sql.exec(
      ADD_PENDING,
      mutation.id,
      mutation.madeAtMs,
      visibleAtMs,
      operation,
      entry?.id ?? null,
      entry?.namespace ?? null,
      entry?.values?.buffer ?? null,
      entry?.metadata ?? null,
      entry?.indexed ? JSON.stringify(entry.indexed) : null,
    );
  }

  /** Return when the last postponed operation becomes visible, or null when none is. */
  lastVisibleAtMs() {
    return this.#sql.exec("SELECT max(visible_at_ms) AS at FROM pending").one().at;
  }

  /** Return the postponed operations that are visible by a time, in the order in which they were made. */
  due(nowMs) {
    return this.#sql
      .exec("SELECT * FROM pending WHERE visible_at_ms <= ? ORDER BY sequence", nowMs)
      .toArray()
      .map((row) => ({
        sequence: row.sequence,
        mutation: { id: row.mutation_id, madeAtMs: row.made_at_ms },
        operation: row.operation,
        entry: row.vector ? entryOf(row) : row.id === null ? null : { id: row.id },
      }));
  }

  forgetPending(lastSequence) {
    this.#sql.exec("DELETE FROM pending WHERE sequence <= ?", lastSequence);
  }

  fact(name) {
    const [row] = this.#sql.exec("SELECT value FROM facts WHERE name = ?", name).toArray();
    return row ? row.value : null;
  }

  setFact(name, value) {
    this.#sql.exec("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", name, value);
  }
}

function entryOf(row) {
  return {
    id: row.id,
    namespace: row.namespace,
    values: new Float32Array(row.vector),
    metadata: row.metadata,
    indexed: JSON.parse(row.indexed),
  };
}
