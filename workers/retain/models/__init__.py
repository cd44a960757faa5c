"""Models behind one interface each: chat and embeddings."""
