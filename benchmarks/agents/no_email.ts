// Replaces `cloudflare:email`, which the SDK imports for agents that send mail and this workerd does not have.
export class EmailMessage {}
