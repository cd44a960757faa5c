"""Chat adapters: one module per wire format and one per streamed format, and what they have in common."""
