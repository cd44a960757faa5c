/** What a test may change in a running index: its clock, and whether calls fail. Kept in memory only. */

export class Control {
  #nowMs = null;
  #failures = [];

  /**
   * Apply the settings that are given.
   *
   * nowMs: stop the clock at this time; null lets it run again.
   * failNext: make this many of the next calls of `method` (of any method, when it is not given) fail. after: true fails
   * them after their work, as when the answer is lost on its way; otherwise nothing is done.
   * reset: true forgets every planned failure.
   */
  set({ nowMs, failNext, method, after, reset }) {
    if (reset) this.#failures = [];
    if (nowMs !== undefined) this.#nowMs = nowMs;
    if (failNext) this.#failures.push({ left: failNext, method, after: Boolean(after) });
  }

  now() {
    return this.#nowMs ?? Date.now();
  }

  /** Begin a call; throw if it is to fail. Returns a function to call after the work, which may throw as well. */
  begin(method) {
    const failure = this.#failures.find((planned) => !planned.method || planned.method === method);
    if (!failure) return () => {};
    failure.left -= 1;
    if (failure.left === 0) this.#failures.splice(this.#failures.indexOf(failure), 1);
    const fail = () => {
      throw new Error(`VECTORIZE_ERROR (code = 50000): ${method} fails ${failure.after ? "after" : "before"} its work, as planned`);
    };
    return failure.after ? fail : fail();
  }
}
