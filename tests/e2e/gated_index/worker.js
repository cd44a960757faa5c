/** The Vectorize stand-in with a gate: each call first asks GATE over HTTP, which answers when the call may pass. */

import Vectorize from "../../../vectorize/stand_in/worker.js";

export { StandInIndex } from "../../../vectorize/stand_in/worker.js";

export default class Gated extends Vectorize {
  async query(vector, options) {
    await fetch(this.env.GATE);
    return super.query(vector, options);
  }

  async upsert(vectors) {
    await fetch(this.env.GATE);
    return super.upsert(vectors);
  }

  async describe() {
    await fetch(this.env.GATE);
    return super.describe();
  }

  async deleteByIds(ids) {
    await fetch(this.env.GATE);
    return super.deleteByIds(ids);
  }
}
