// The upstream: answers a constant as soon as it has read the request.
const BODY = JSON.stringify({ order: "A-1001", status: "shipped", items: [{ sku: "lamp", quantity: 2 }] });

export default {
  async fetch(request) {
    await request.text();
    return new Response(BODY, { headers: { "content-type": "application/json" } });
  },
};
