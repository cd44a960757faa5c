// The agent of the benchmark on Cloudflare's Agents SDK: three tool steps, episodes, working memory, a scripted model.
// A step is noted in the object's SQLite before and after it. With `SHARED` the same goes where Retain lets others read it:
// the run, its events and its episodes to D1, through waitUntil, and working values to KV.
import { Agent, getAgentByName } from "agents";

interface Env {
  Clerk: DurableObjectNamespace<Clerk>;
  DB: D1Database;
  KV: KVNamespace;
  SHARED: string;
}
interface Call { tool: string; arguments: Record<string, string> }
interface Reply { text?: string; call?: Call }

const EPISODES = 10;

function ask(input: string, results: number): Reply {
  const order = /A-\d+/.exec(input)?.[0] ?? "";
  if (results === 0) return { call: { tool: "set_working_memory", arguments: { key: "order", value: order } } };
  if (results === 1) return { call: { tool: "get_working_memory", arguments: { key: "order" } } };
  const text = `Order ${order} is on its way.`;
  if (results === 2) return { call: { tool: "set_working_memory", arguments: { key: "draft", value: text } } };
  return { text };
}

export class Clerk extends Agent<Env, { working: Record<string, string> }> {
  initialState = { working: {} };

  onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS runs (run_id TEXT PRIMARY KEY, input TEXT, output TEXT, status TEXT, at_ms INTEGER)`;
    this.sql`CREATE TABLE IF NOT EXISTS events (run_id TEXT, seq INTEGER, kind TEXT, data TEXT, at_ms INTEGER, PRIMARY KEY (run_id, seq))`;
    this.sql`CREATE TABLE IF NOT EXISTS episodes (run_id TEXT, turn INTEGER, content TEXT, at_ms INTEGER, PRIMARY KEY (run_id, turn))`;
  }

  async run(input: string) {
    const runId = crypto.randomUUID();
    const events: [number, string, string, number][] = [];
    const note = (kind: string, value: unknown) => {
      const [seq, data, now] = [events.length + 1, JSON.stringify(value), Date.now()];
      this.sql`INSERT INTO events VALUES (${runId}, ${seq}, ${kind}, ${data}, ${now})`;
      events.push([seq, kind, data, now]);
    };
    const past = await this.episodes();
    this.sql`INSERT INTO runs VALUES (${runId}, ${input}, NULL, 'running', ${Date.now()})`;
    const said: string[] = [...past, input];
    for (let turn = 0; ; turn += 1) {
      note("model_asked", { turn, messages: said.length });
      const reply = ask(input, turn);
      note("model_answered", reply);
      if (reply.call === undefined) {
        const output = reply.text ?? "";
        const now = Date.now();
        this.sql`UPDATE runs SET output = ${output}, status = 'completed' WHERE run_id = ${runId}`;
        this.sql`INSERT INTO episodes VALUES (${runId}, ${turn}, ${`input: ${input}\noutput: ${output}`}, ${now})`;
        if (this.env.SHARED === "true") this.ctx.waitUntil(this.share(runId, input, output, events, now));
        return { run_id: runId, status: "completed", output };
      }
      note("tool_called", reply.call);
      said.push(await this.call(reply.call));
      note("tool_answered", said.at(-1));
    }
  }

  private async call({ tool, arguments: given }: Call): Promise<string> {
    if (tool === "get_working_memory") return this.state.working[given.key] ?? "";
    this.setState({ working: { ...this.state.working, [given.key]: given.value } });
    if (this.env.SHARED === "true") {
      await this.env.KV.put(`agent_working:bench:${this.name}:${given.key}`, given.value, { expirationTtl: 3600 });
    }
    return "stored";
  }

  private async episodes(): Promise<string[]> {
    if (this.env.SHARED !== "true") {
      return this.sql<{ content: string }>`SELECT content FROM episodes ORDER BY at_ms DESC LIMIT ${EPISODES}`.map((row) => row.content);
    }
    const query = "SELECT content FROM clerk_episodes WHERE instance = ? ORDER BY at_ms DESC LIMIT ?";
    const { results } = await this.env.DB.prepare(query).bind(this.name, EPISODES).all<{ content: string }>();
    return results.map((row) => row.content);
  }

  private async share(runId: string, input: string, output: string, events: [number, string, string, number][], now: number) {
    const { DB } = this.env;
    await DB.batch([
      DB.prepare("INSERT INTO clerk_runs VALUES (?, ?, ?, ?, ?)").bind(runId, this.name, input, output, now),
      DB.prepare(
        "INSERT INTO clerk_events SELECT ?, value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)",
      ).bind(runId, JSON.stringify(events)),
      DB.prepare("INSERT INTO clerk_episodes VALUES (?, ?, ?, ?)").bind(runId, this.name, `input: ${input}\noutput: ${output}`, now),
    ]);
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { input, instance_id } = (await request.json()) as { input: string; instance_id: string };
    const agent = await getAgentByName(env.Clerk, instance_id);
    return Response.json(await agent.run(input));
  },
};
