"""The memory contracts, for programs that embed Retain: conversations (`ChatMemory`) and documents (`VectorMemory`).

Retain's own agents do not use them. The third contract, `Embedder`, is in `retain.models.embedding`. A backend implements
the one it is good at; the conformance suite in `retain.testing` finds out whether it does.
"""
