"""A run of the same agent: Retain, Cloudflare's Agents SDK, LangGraph."""
