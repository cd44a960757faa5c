"""The memory contracts, each on its own: conversations (`ChatMemory`) and documents with vectors (`VectorMemory`).

The third contract, `Embedder`, stands in `retain.models.embedding`. A backend implements the one that it is good at.
Whether it does is what `retain.testing` finds out.
"""
