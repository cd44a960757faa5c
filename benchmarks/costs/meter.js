/**
 * A database of workerd's own SQLite that says what each statement read and wrote, as D1 does in `meta`.
 *
 * D1 is a Durable Object with SQLite; its `rows_read` and `rows_written` are the cursor's counts, which workerd's patch of
 * SQLite makes. `POST /` takes a list of [sql, values], runs them in one transaction, and answers a list of
 * {columns, rows, changes, read, written}, or {error}.
 */

import { DurableObject } from "cloudflare:workers";

export default {
  fetch(request, env) {
    return env.DATABASE.getByName("database").fetch(request);
  },
};

export class Database extends DurableObject {
  async fetch(request) {
    const statements = await request.json();
    const { sql } = this.ctx.storage;
    const changes = () => sql.exec("SELECT total_changes() AS n").one().n;
    try {
      const results = this.ctx.storage.transactionSync(() =>
        statements.map(([text, values]) => {
          const before = changes();
          const cursor = sql.exec(text, ...values);
          const rows = [...cursor.raw()];
          const read = cursor.rowsRead;
          const written = cursor.rowsWritten;
          return { columns: cursor.columnNames, rows, changes: changes() - before, read, written };
        }),
      );
      return Response.json(results);
    } catch (error) {
      return Response.json({ error: String(error.message ?? error) });
    }
  }
}
