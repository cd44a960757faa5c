"""The generated parts of the clients, from the OpenAPI document: `python -m tools.clients`.

Git does not have them. Whoever builds, checks or tests a client makes them first; nothing is done if they are current.
"""

from __future__ import annotations

from tools.clients.generate import PYTHON, TYPESCRIPT, generate

__all__ = ["PYTHON", "TYPESCRIPT", "generate"]
