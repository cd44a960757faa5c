/**
 * A local stand-in for Cloudflare Vectorize, which has no local simulation.
 *
 * Bound as a service under the name of the real binding, it takes the same calls and gives the same answers. Each
 * index is a Durable Object, so it survives restarts. See vectorize/README.md for what it reproduces and what it does not.
 */

import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";

import { configuration } from "./configuration.js";
import { Control } from "./control.js";
import { Index } from "./index.js";
import { Storage } from "./storage.js";

/** The binding. Its methods are Vectorize's; `control` is for tests. */
export default class Vectorize extends WorkerEntrypoint {
  query(vector, options) {
    return this.#call("query", vector, options);
  }

  queryById(id, options) {
    return this.#call("queryById", id, options);
  }

  upsert(vectors) {
    return this.#call("upsert", vectors);
  }

  insert(vectors) {
    return this.#call("insert", vectors);
  }

  getByIds(ids) {
    return this.#call("getByIds", ids);
  }

  deleteByIds(ids) {
    return this.#call("deleteByIds", ids);
  }

  describe() {
    return this.#call("describe");
  }

  /** Steer the index for a test: see control.js. Refused unless ALLOW_CONTROL is "1". */
  control(settings) {
    if (this.env.ALLOW_CONTROL !== "1") throw new Error('control needs the variable ALLOW_CONTROL = "1"');
    return this.#object().control(settings);
  }

  #call(method, ...values) {
    return this.#object().call(method, values);
  }

  #object() {
    return this.env.INDEX.getByName(configuration(this.env).name + this.suffix);
  }

  /** What the index's name has in addition, where a deployment has several. */
  get suffix() {
    return "";
  }
}

/** Return the binding of a further index: each database of a deployment has its own. */
const further = (number) =>
  class extends Vectorize {
    get suffix() {
      return `-${number}`;
    }
  };

export const Vectorize1 = further(1);
export const Vectorize2 = further(2);
export const Vectorize3 = further(3);
export const Vectorize4 = further(4);
export const Vectorize5 = further(5);
export const Vectorize6 = further(6);
export const Vectorize7 = further(7);

/** One index. Loaded on its first call; every call is synchronous after that, so none sees another half-done. */
export class StandInIndex extends DurableObject {
  #index;
  #control = new Control();

  call(method, values) {
    const finish = this.#control.begin(method);
    this.#index ??= this.#open();
    const answer = this.#index[method](...values);
    finish();
    return answer;
  }

  control(settings) {
    this.#control.set(settings);
  }

  #open() {
    const { storage } = this.ctx;
    const transaction = (work) => storage.transactionSync(work);
    return new Index(new Storage(storage.sql), transaction, configuration(this.env), () => this.#control.now());
  }
}
