"""Chat and embedding models, one port each, with retries and selection by configuration."""
