import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";

/** Where a tenant's applications hear of runs. */
export class Webhooks {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Return the webhooks, the oldest first. */
  list(query: Query<"list_webhooks"> = {}): Pages<Schemas["Webhook"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/webhooks", { params }));
      return [page.webhooks, page.cursor];
    });
  }

  /** Create a webhook. Its `secret`, with which messages are signed, is in this answer alone. */
  async create(body: Schemas["WebhookBody"]): Promise<Schemas["CreatedWebhook"]> {
    const params = { path: { tenant: this.tenant } };
    return answered(await this.api.POST("/v1/tenants/{tenant}/webhooks", { params, body }));
  }

  /** Give a webhook another secret, which is in this answer alone. For a while, an hour unless given, the old one signs as well. */
  async rotate(webhookId: string, body: Schemas["RotateSecretBody"] = {}): Promise<Schemas["CreatedWebhook"]> {
    const params = { path: this.path(webhookId) };
    return answered(await this.api.POST("/v1/tenants/{tenant}/webhooks/{webhook_id}/rotate", { params, body }));
  }

  /** Delete a webhook: what it was not sent yet is not sent. */
  async delete(webhookId: string): Promise<void> {
    deleted(await this.api.DELETE("/v1/tenants/{tenant}/webhooks/{webhook_id}", { params: { path: this.path(webhookId) } }));
  }

  /** Return what a webhook was sent and is owed, the messages of the newest runs first. */
  deliveries(webhookId: string, query: Query<"list_deliveries"> = {}): Pages<Schemas["Delivery"]> {
    return new Pages(async (cursor) => {
      const params = { path: this.path(webhookId), query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/tenants/{tenant}/webhooks/{webhook_id}/deliveries", { params }));
      return [page.deliveries, page.cursor];
    });
  }

  /** Send a message again, whatever became of it. */
  async replay(webhookId: string, messageId: string): Promise<Schemas["Delivery"]> {
    const params = { path: { ...this.path(webhookId), message_id: messageId } };
    return answered(
      await this.api.POST("/v1/tenants/{tenant}/webhooks/{webhook_id}/deliveries/{message_id}/replay", { params }),
    );
  }

  private path(webhookId: string) {
    return { tenant: this.tenant, webhook_id: webhookId };
  }
}
