"""Development tools: staging, the offline runtime, the local server, provisioning."""
