import { notRetains, objectOf } from "./errors.js";
import { Pages } from "./pages.js";
import { sleep } from "./retries.js";
import { answered, type Api, type Query, type Schemas } from "./schemas.js";

/** A tenant's users. */
export class Users {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Return the users by their ids. */
  list(query: Query<"list_users"> = {}): Pages<Schemas["User"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/users", { params }));
      return [page.users, page.cursor];
    });
  }

  /** Return a user's profile, and how much is kept of them. */
  async get(user: string): Promise<Schemas["ShownUser"]> {
    const params = { path: { tenant: this.tenant, user } };
    return answered(await this.api.GET("/v1/tenants/{tenant}/users/{user}", { params }));
  }

  /** Set a user's profile; what is absent is taken away. */
  async put(user: string, body: Schemas["ProfileBody"]): Promise<Schemas["ShownUser"]> {
    const params = { path: { tenant: this.tenant, user } };
    return answered(await this.api.PUT("/v1/tenants/{tenant}/users/{user}", { params, body }));
  }

  /**
   * Erase a user with everything that is kept of them; continue until it is complete or the time is up.
   *
   * The receipt's `state` says which. Calling it again continues.
   */
  async forget(user: string, options: { timeoutS?: number } = {}): Promise<Schemas["Erasure"]> {
    const until = Date.now() + (options.timeoutS ?? 60) * 1000;
    const params = { path: { tenant: this.tenant, user } };
    for (;;) {
      const erasure = answered(await this.api.DELETE("/v1/tenants/{tenant}/users/{user}", { params }));
      const pauseMs = erasure.retry_after_ms;
      if (pauseMs !== null && typeof pauseMs !== "number") throw notRetains("it is not an erasure");
      if (pauseMs === null || Date.now() + pauseMs > until) return erasure;
      await sleep(pauseMs / 1000);
    }
  }

  /** Yield all that is kept of a user, one line of the export after the other. */
  async *export(user: string): AsyncGenerator<Record<string, unknown>, void, undefined> {
    let query: { cursor?: string } = {};
    for (;;) {
      const params = { path: { tenant: this.tenant, user }, query };
      const found = await this.api.GET("/v1/tenants/{tenant}/users/{user}/export", { params, parseAs: "text" });
      const lines = String(found.data ?? "").split("\n").filter((line) => line !== "").map(objectOf);
      const last = lines.at(-1);
      if (last?.["kind"] !== "page") throw notRetains("the page of the export is cut off", found.response.status);
      yield* lines;
      if (last["cursor"] === null) return;
      query = { cursor: String(last["cursor"]) };
    }
  }
}

/** Makes short-lived tokens for the browsers of an application's users, with the application's key. */
export class Tokens {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Make a token for a user. */
  async create(body: Partial<Schemas["TokenBody"]> & { user: string }): Promise<Schemas["Token"]> {
    const params = { path: { tenant: this.tenant } };
    return answered(await this.api.POST("/v1/tenants/{tenant}/tokens", { params, body }));
  }
}
