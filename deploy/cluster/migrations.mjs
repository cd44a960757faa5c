// Applies the migrations that the database lacks. Every node asks for it when it starts: a migration's first statement
// notes its name, which is unique, in the same transaction, so it is applied once, whoever comes first.
import migrations from "migrations.json";

const NOTED = `CREATE TABLE IF NOT EXISTS d1_migrations (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL
)`;

export default {
  async fetch(request, env) {
    if (request.method !== "POST") return new Response("POST applies the migrations\n", { status: 405 });
    await env.DB.prepare(NOTED).run();
    const applied = [];
    for (const { name, statements } of migrations) {
      const { results } = await env.DB.prepare("SELECT 1 FROM d1_migrations WHERE name = ?").bind(name).all();
      if (results.length > 0) continue;
      const noted = env.DB.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name);
      try {
        await env.DB.batch([noted, ...statements.map((statement) => env.DB.prepare(statement))]);
        applied.push(name);
      } catch (error) {
        if (!String(error).includes("d1_migrations.name")) {
          return Response.json({ failed: name, error: String(error) }, { status: 500 });
        }
      }
    }
    return Response.json({ applied });
  },
};
