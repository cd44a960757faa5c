import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";

/** The conversations of a tenant. Each is an instance of an agent. */
export class Conversations {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Return conversations, that with the newest run first. */
  list(query: Query<"list_instances"> = {}): Pages<Schemas["Conversation"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/agents/{tenant}/instances", { params }));
      return [page.instances, page.cursor];
    });
  }

  /** Return an instance: its newest runs, its queue and its conversation. */
  async get(agentType: string, instanceId: string): Promise<Schemas["Instance"]> {
    const params = { path: this.path(agentType, instanceId) };
    return answered(await this.api.GET("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", { params }));
  }

  /** Return what was asked and answered. */
  messages(
    agentType: string,
    instanceId: string,
    query: Query<"list_messages"> = {},
  ): Pages<Schemas["Message"]> {
    return new Pages(async (cursor) => {
      const params = { path: this.path(agentType, instanceId), query: { ...query, ...cursor } };
      const page = answered(
        await this.api.GET("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}/messages", { params }),
      );
      return [page.messages, page.cursor];
    });
  }

  /** Give a conversation a title. */
  async rename(agentType: string, instanceId: string, title: string): Promise<Schemas["Conversation"]> {
    const params = { path: this.path(agentType, instanceId) };
    return answered(
      await this.api.PATCH("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", { params, body: { title } }),
    );
  }

  /** Delete a conversation with everything that its instance holds. */
  async delete(agentType: string, instanceId: string): Promise<void> {
    const params = { path: this.path(agentType, instanceId) };
    deleted(await this.api.DELETE("/v1/agents/{tenant}/{agent_type}/instances/{instance_id}", { params }));
  }

  private path(agentType: string, instanceId: string) {
    return { tenant: this.tenant, agent_type: agentType, instance_id: instanceId };
  }
}
