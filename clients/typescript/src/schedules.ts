import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";
import { keyed } from "./transport.js";

/** Runs that begin without being asked for. */
export class Schedules {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Return the schedules, the newest first. */
  list(query: Query<"list_schedules"> = {}): Pages<Schemas["Schedule"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/schedules", { params }));
      return [page.schedules, page.cursor];
    });
  }

  /** Create a schedule. idempotencyKey: with the same one the same schedule is returned; a new one if absent. */
  async create(
    body: Schemas["ScheduleBody"],
    options: { idempotencyKey?: string } = {},
  ): Promise<Schemas["Schedule"]> {
    const header = keyed(options.idempotencyKey);
    const params = { path: { tenant: this.tenant }, header };
    return answered(await this.api.POST("/v1/tenants/{tenant}/schedules", { params, body }));
  }

  /** Return a schedule. */
  async get(scheduleId: string): Promise<Schemas["Schedule"]> {
    const params = { path: this.path(scheduleId) };
    return answered(await this.api.GET("/v1/tenants/{tenant}/schedules/{schedule_id}", { params }));
  }

  /** Pause a schedule: what is due meanwhile does not begin. */
  async pause(scheduleId: string): Promise<Schemas["Schedule"]> {
    return this.change(scheduleId, { state: "paused" });
  }

  /** Let a schedule be due again, from its next time on. */
  async resume(scheduleId: string): Promise<Schemas["Schedule"]> {
    return this.change(scheduleId, { state: "active" });
  }

  /** Delete a schedule. Its runs stay. */
  async delete(scheduleId: string): Promise<void> {
    deleted(await this.api.DELETE("/v1/tenants/{tenant}/schedules/{schedule_id}", { params: { path: this.path(scheduleId) } }));
  }

  private async change(scheduleId: string, body: Schemas["ScheduleStateBody"]): Promise<Schemas["Schedule"]> {
    const params = { path: this.path(scheduleId) };
    return answered(await this.api.PATCH("/v1/tenants/{tenant}/schedules/{schedule_id}", { params, body }));
  }

  private path(scheduleId: string) {
    return { tenant: this.tenant, schedule_id: scheduleId };
  }
}
