import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";

/** ifMatch: the version that must be current; 0 for an agent that must not be there. The last change wins without it. */
export interface ChangeOptions {
  ifMatch?: number;
}

/** The agents of a tenant: those of the repository, and those that it defines. */
export class Agents {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Return the agents by their types. */
  list(query: Query<"list_agents"> = {}): Pages<Schemas["ListedAgent"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/agents/{tenant}", { params }));
      return [page.agents, page.cursor];
    });
  }

  /** Return an agent as it is defined now; one of the repository without its definition. */
  async get(agentType: string): Promise<Schemas["ShownAgent"]> {
    const params = { path: this.path(agentType) };
    return answered(await this.api.GET("/v1/tenants/{tenant}/agents/{agent_type}", { params }));
  }

  /** Define an agent of the tenant, or change it. `definition` has the fields of a file in `agents/`. */
  async define(
    agentType: string,
    definition: Schemas["DefinitionBody"],
    options: ChangeOptions = {},
  ): Promise<Schemas["DefinedAgent"]> {
    const params = this.change(agentType, options);
    return answered(await this.api.PUT("/v1/tenants/{tenant}/agents/{agent_type}", { params, body: definition }));
  }

  /** Return what is wrong with a definition, without defining the agent. */
  async check(agentType: string, definition: Schemas["DefinitionBody"]): Promise<Schemas["CheckedAgent"]> {
    const params = { path: this.path(agentType) };
    return answered(await this.api.POST("/v1/tenants/{tenant}/agents/{agent_type}/check", { params, body: definition }));
  }

  /** Return the versions of an agent of the tenant, the newest first. */
  versions(agentType: string, query: Query<"list_agent_versions"> = {}): Pages<Schemas["AgentVersion"]> {
    return new Pages(async (cursor) => {
      const params = { path: this.path(agentType), query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/agents/{agent_type}/versions", { params }));
      return [page.versions, page.cursor];
    });
  }

  /** Return one version with its definition. */
  async version(agentType: string, version: number): Promise<Schemas["ShownVersion"]> {
    const params = { path: { ...this.path(agentType), version: String(version) } };
    return answered(await this.api.GET("/v1/tenants/{tenant}/agents/{agent_type}/versions/{version}", { params }));
  }

  /** Define an agent as it was in an earlier version, which adds a version. */
  async rollBack(agentType: string, version: number, options: ChangeOptions = {}): Promise<Schemas["DefinedAgent"]> {
    const params = this.change(agentType, options);
    const body = { version };
    return answered(await this.api.POST("/v1/tenants/{tenant}/agents/{agent_type}/rollback", { params, body }));
  }

  /** Delete an agent of the tenant: it begins no more runs. Its versions and memories stay. */
  async delete(agentType: string, options: ChangeOptions = {}): Promise<void> {
    const params = this.change(agentType, options);
    deleted(await this.api.DELETE("/v1/tenants/{tenant}/agents/{agent_type}", { params }));
  }

  private change(agentType: string, { ifMatch }: ChangeOptions) {
    const header = ifMatch === undefined ? {} : { "if-match": `"${ifMatch}"` };
    return { path: this.path(agentType), header };
  }

  private path(agentType: string) {
    return { tenant: this.tenant, agent_type: agentType };
  }
}
