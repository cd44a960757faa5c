// Drives AG-UI's HttpAgent, as an application would, and prints what it saw as JSON.
import { HttpAgent } from "@ag-ui/client";

const { RETAIN_AGENTS, RETAIN_KEY } = process.env;
const agentOf = (type, threadId) =>
  new HttpAgent({
    url: `${RETAIN_AGENTS}/${type}/ag-ui`,
    headers: { authorization: `Bearer ${RETAIN_KEY}` },
    threadId,
  });
const ask = async (agent, content, parameters = {}) => {
  if (content !== null) {
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
  }
  const seen = {};
  await agent.runAgent(parameters, {
    onRunFinishedEvent: ({ event }) => {
      seen.outcome = event.outcome;
    },
  });
  return seen;
};
const lastText = (agent) => agent.messages.filter((one) => one.role === "assistant" && one.content).at(-1)?.content;

const sdr = agentOf("sdr", "desk");
await ask(sdr, "Contact c-100 prefers email");
const noted = lastText(sdr);
await ask(sdr, "How do I reach contact c-100?");
const reached = lastText(sdr);

const clerk = agentOf("clerk", "desk");
const { outcome } = await ask(clerk, "refund AB-1");
const [interrupt] = outcome.interrupts;
await ask(clerk, null, { resume: [{ interruptId: interrupt.id, status: "resolved", payload: { approved: true } }] });
const tools = clerk.messages.flatMap((one) => one.toolCalls ?? []).map((call) => call.function.name);

let failed = false;
try {
  await ask(agentOf("nobody", "desk"), "hello");
} catch {
  failed = true;
}
console.log(JSON.stringify({ noted, reached, interrupt, refunded: lastText(clerk), tools, failed }));
