// A request to a server and its answer, for `adapters/web.py`. It is JavaScript because each value that passes from here
// to Python, and each promise that Python awaits, takes longer than the work itself.

// Sends a request, which the time or `giveUp` ends; `answer` is a promise. headers: JSON. Redirects are not followed.
export function send(method, url, headers, body, timeoutMs) {
  const controller = new AbortController();
  const signal = AbortSignal.any([controller.signal, AbortSignal.timeout(timeoutMs)]);
  const answer = sending(url, { method, headers, body, redirect: "manual", signal });
  return { answer, giveUp: () => controller.abort() };
}

// Sends a request as `send`, and receives its answer with its content if that is announced as at most so many bytes.
// What may be larger is left to the caller, who has to find room for it first: its size is -1. If the content breaks off,
// the rejection has the status that was `answered`.
export function exchange(method, url, headers, body, timeoutMs, atOnceBytes) {
  const { answer, giveUp } = send(method, url, headers, body, timeoutMs);
  return { answer: received(answer, atOnceBytes), giveUp };
}

// Asynchronous, so that what `fetch` throws is a rejection like any other.
async function sending(url, { headers, ...options }) {
  return await fetch(url, { ...options, headers: JSON.parse(headers) });
}

async function received(sent, atOnceBytes) {
  const response = await sent;
  const length = response.headers.get("content-length") ?? "";
  const fits = /^[0-9]+$/.test(length) && Number(length) <= atOnceBytes;
  // An encoded body is longer than was announced. The platform gives no more bytes than were announced of any other.
  if (!fits || response.headers.has("content-encoding")) return { response, size: -1 };
  try {
    const content = await response.arrayBuffer();
    return { response, content, size: content.byteLength };
  } catch (error) {
    error.answered = response.status;
    throw error;
  }
}
