import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";

/** A tenant's memories. `user_id`, `agent_type` and `house` say whose; without them a memory is the whole tenant's. */
export class Memories {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Store one memory; the same content is stored once. */
  async store(body: Partial<Schemas["StoreBody"]> & { content: string }): Promise<Schemas["StoredMemory"]> {
    const params = { path: { tenant: this.tenant } };
    return answered(await this.api.POST("/v1/tenants/{tenant}/memories", { params, body }));
  }

  /** Return what is remembered about a query, best first. */
  async recall(body: Partial<Schemas["RecallBody"]> & { query: string }): Promise<Schemas["Recall"]> {
    const params = { path: { tenant: this.tenant } };
    return answered(await this.api.POST("/v1/tenants/{tenant}/memories/recall", { params, body }));
  }

  /** Return memories, oldest first. filter: conditions on metadata and fields. */
  list(
    query: Omit<Query<"list_memories">, "filter"> & { filter?: Record<string, unknown> } = {},
  ): Pages<Schemas["Memory"]> {
    const { filter, ...others } = query;
    const filtered = filter === undefined ? {} : { filter: JSON.stringify(filter) };
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...others, ...filtered, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/memories", { params }));
      return [page.memories, page.cursor];
    });
  }

  /** Return a memory with the events that made it. */
  async get(memoryId: string): Promise<Schemas["MemoryWithEvents"]> {
    const params = { path: { tenant: this.tenant, id: memoryId } };
    return answered(await this.api.GET("/v1/tenants/{tenant}/memories/{id}", { params }));
  }

  /** Change the named fields of a memory; null is a value. ifMatch: `last_event_id` of the memory on which the change is based. */
  async update(
    memoryId: string,
    body: Schemas["EditBody"],
    options: { ifMatch?: string } = {},
  ): Promise<Schemas["Memory"]> {
    const header = options.ifMatch === undefined ? {} : { "if-match": `"${options.ifMatch}"` };
    const params = { path: { tenant: this.tenant, id: memoryId }, header };
    return answered(await this.api.PATCH("/v1/tenants/{tenant}/memories/{id}", { params, body }));
  }

  /** Delete a memory: it is no longer found. */
  async delete(memoryId: string): Promise<void> {
    const params = { path: { tenant: this.tenant, id: memoryId } };
    deleted(await this.api.DELETE("/v1/tenants/{tenant}/memories/{id}", { params }));
  }

  /** Store a conversation's messages and extract facts; the same request is the same job. */
  async ingest(body: Schemas["IngestBody"]): Promise<Schemas["IngestJob"]> {
    const params = { path: { tenant: this.tenant } };
    return answered(await this.api.POST("/v1/tenants/{tenant}/memories/ingest", { params, body }));
  }

  /** Return how far an ingest is. */
  async ingestJob(jobId: string): Promise<Schemas["IngestJob"]> {
    const params = { path: { tenant: this.tenant, job_id: jobId } };
    return answered(await this.api.GET("/v1/tenants/{tenant}/memories/ingest/{job_id}", { params }));
  }
}
