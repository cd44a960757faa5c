// A Worker for tests: calls a method of a service binding over HTTP. POST /<binding>/<method>, the arguments as a JSON list.
export default {
  async fetch(request, env) {
    const [binding, method] = new URL(request.url).pathname.slice(1).split("/");
    try {
      const result = await env[binding][method](...(await request.json()));
      return Response.json({ result: result ?? null });
    } catch (error) {
      return Response.json({ error: error.message }, { status: 400 });
    }
  },
};
