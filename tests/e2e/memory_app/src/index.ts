/** A chat with memory, written against the types of Cloudflare Agent Memory's binding (`@cloudflare/workers-types`). */

interface Env {
  MEMORY: AgentMemoryNamespace;
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === "/healthz") return new Response("ok");
    const visit = visits[pathname];
    if (visit === undefined) return new Response("there is no such visit", { status: 404 });
    try {
      return Response.json(await visit(env.MEMORY));
    } catch (error) {
      return Response.json({ thrown: (error as Error).message }, { status: 500 });
    }
  },
} satisfies ExportedHandler<Env>;

const visits: Record<string, (memory: AgentMemoryNamespace) => Promise<unknown>> = {
  /** Every call of a profile, as the documentation shows them. */
  async "/whole"(memory) {
    const profile = await memory.getProfile("ann");
    const stored = await profile.remember({ content: "Ann drinks green tea.", sessionId: "s1" });
    await profile.ingest(
      [
        { role: "user", content: "My name is Ann Lang and I live in Basel.", timestamp: new Date("2026-11-20T10:00:00Z") },
        { role: "assistant", content: "Nice to meet you, Ann." },
      ],
      { sessionId: "s2" },
    );
    const recalled = await profile.recall("What does Ann drink?", {
      thinkingLevel: "high",
      responseLength: "short",
      referenceDate: new Date(),
    });
    const first = await profile.list({ limit: 1 });
    const second = await profile.list({ limit: 100, cursor: first.cursor });
    const ofSession = await profile.list({ sessionId: "s1", type: "fact" });
    const shown = await profile.get(stored.id);
    const { summary } = await profile.getSummary({ sessionId: "s2" });
    const deleted = await profile.delete(stored.id);
    await profile.deleteSession("s2");
    const left = await profile.list();
    return {
      stored,
      dates: stored.createdAt instanceof Date && shown.updatedAt instanceof Date,
      recalled,
      first,
      second,
      ofSession,
      shown,
      summary,
      deleted,
      left,
    };
  },

  /** A call on a profile that was not awaited, as pipelining allows. */
  async "/pipelined"(memory) {
    const stored = await memory.getProfile("ben").remember({ content: "Ben plays chess." });
    const { answer, count, candidates } = await memory.getProfile("ben").recall("What does Ben play?");
    await memory.deleteProfile("ben");
    return { stored, answer, count, candidates, after: await memory.getProfile("ben").list() };
  },

  async "/absent"(memory) {
    return memory.getProfile("ann").get("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  },

  async "/too-many"(memory) {
    return memory.getProfile("ann").list({ limit: 501 });
  },

  /** The names that programs pass when they have none: which calls took one, and the profiles that they made. */
  async "/nameless"(memory) {
    const names = [undefined, null, 7, "", ".", ".."] as string[];
    const profile = await memory.getProfile("ann");
    const calls = names.flatMap((name) => [
      () => memory.getProfile(name).remember({ content: "Nobody drinks tea." }),
      () => memory.deleteProfile(name),
      () => profile.get(name),
      () => profile.deleteSession(name),
    ]);
    const results = await Promise.all(calls.map((call) => call().then(() => "taken", (error: Error) => error.message)));
    return [...new Set(results)];
  },
};
