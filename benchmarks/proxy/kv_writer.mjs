// Writes what the benchmark needs into KV: a body of [key, value] for each request.
export default {
  async fetch(request, env) {
    const [key, value] = await request.json();
    await env.KV.put(key, value);
    return new Response("written");
  },
};
