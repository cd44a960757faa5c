/** Yield the pieces of a body. Throws when it breaks, or is silent for so many seconds. */
export async function* piecesOf(body: ReadableStream<Uint8Array>, silenceS: number): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await heardWithin(reader.read(), silenceS);
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function heardWithin<Heard>(waited: Promise<Heard>, seconds: number): Promise<Heard> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`nothing was heard for ${seconds} s`)), seconds * 1000);
  });
  try {
    return await Promise.race([waited, silence]);
  } finally {
    clearTimeout(timer);
  }
}
