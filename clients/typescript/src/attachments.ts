import { Pages } from "./pages.js";
import { answered, type Api, deleted, type Query, type Schemas } from "./schemas.js";

/** name: what the model reads; a File has its own. mediaType: a Blob has its own. user: only their runs may name the file. */
export interface UploadOptions {
  name?: string;
  mediaType?: string;
  user?: string;
  signal?: AbortSignal;
}

/** The attachments of a tenant, or of the user whose token the client has. */
export class Attachments {
  constructor(
    private readonly api: Api,
    private readonly tenant: string,
  ) {}

  /** Upload a file and return the attachment, that of an earlier upload of the same file if there is one. */
  async upload(content: Blob | ArrayBuffer | Uint8Array, options: UploadOptions = {}): Promise<Schemas["Attachment"]> {
    const body = new Blob([content as BlobPart]);
    const name = options.name ?? (typeof File !== "undefined" && content instanceof File ? content.name : undefined);
    const declared = options.mediaType ?? (content instanceof Blob ? content.type : "");
    const query = { ...(name ? { name } : {}), ...(options.user === undefined ? {} : { user: options.user }) };
    return answered(
      await this.api.POST("/v1/agents/{tenant}/attachments", {
        params: { path: { tenant: this.tenant }, query },
        body: body as unknown as string,
        bodySerializer: (sent: unknown) => sent as Blob,
        headers: { "content-type": declared || "application/octet-stream" },
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      }),
    );
  }

  /** Return attachments, the newest first. */
  list(query: Query<"list_attachments"> = {}): Pages<Schemas["Attachment"]> {
    return new Pages(async (cursor) => {
      const params = { path: { tenant: this.tenant }, query: { ...query, ...cursor } };
      const page = answered(await this.api.GET("/v1/agents/{tenant}/attachments", { params }));
      return [page.attachments, page.cursor];
    });
  }

  /** Return what is known of an attachment. */
  async get(attachmentId: string): Promise<Schemas["Attachment"]> {
    const params = { path: this.path(attachmentId) };
    return answered(await this.api.GET("/v1/agents/{tenant}/attachments/{attachment_id}", { params }));
  }

  /** Return an attachment's content. */
  async download(attachmentId: string): Promise<Blob> {
    const params = { path: this.path(attachmentId) };
    const found = await this.api.GET("/v1/agents/{tenant}/attachments/{attachment_id}/content", {
      params,
      parseAs: "blob",
    });
    return answered(found as { data?: Blob; response: Response });
  }

  /** Delete an attachment: no run reads it any more. */
  async delete(attachmentId: string): Promise<void> {
    const params = { path: this.path(attachmentId) };
    deleted(await this.api.DELETE("/v1/agents/{tenant}/attachments/{attachment_id}", { params }));
  }

  private path(attachmentId: string) {
    return { tenant: this.tenant, attachment_id: attachmentId };
  }
}
