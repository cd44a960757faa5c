// Fills KV and D1 for a benchmark: PUT /kv with [key, value], POST /sql with a list of [statement, values].
export default {
  async fetch(request, env) {
    const value = await request.json();
    if (new URL(request.url).pathname === "/kv") {
      await env.KV.put(...value);
      return Response.json(true);
    }
    try {
      const results = await env.DB.batch(value.map(([sql, values]) => env.DB.prepare(sql).bind(...values)));
      return Response.json(results.map(({ results }) => results));
    } catch (error) {
      return new Response(String(error.message ?? error), { status: 500 });
    }
  },
};
