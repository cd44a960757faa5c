"""The memory contracts, for programs that embed Retain: conversations (`ChatMemory`) and documents (`VectorMemory`).

Retain's own agents do not use them. The third contract, `Embedder`, is in `retain.models.embedding`. A backend implements
one contract; the conformance suite in `retain.testing` checks that it keeps it.
"""
