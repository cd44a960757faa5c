// Statements for D1 and for an object's SQLite, for `adapters/databases.py`. It is JavaScript because each statement, cursor
// and result that passes from here to Python takes as long as a small statement. A statement is an array: its text and its
// values. A result is one as well: its rows, how many rows changed, and the size of the database.

// Runs one statement of D1.
export async function run(database, statement) {
  return result(await prepared(database, statement).all());
}

// Runs statements of D1 in one transaction.
export async function batch(database, statements) {
  const results = await database.batch(statements.map((statement) => prepared(database, statement)));
  return results.map(result);
}

// Runs one statement of an object's SQLite, and returns its rows; nothing when there are none.
export function rows(sql, statement, ...values) {
  const found = sql.exec(statement, ...values).toArray();
  return found.length > 0 ? found : undefined;
}

function prepared(database, [statement, ...values]) {
  return database.prepare(statement).bind(...values);
}

function result({ results, meta }) {
  return [results, meta.changes, meta.size_after];
}
