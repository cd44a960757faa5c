"""Chat adapters: one module for what a provider is sent and answers, and what they have in common."""
