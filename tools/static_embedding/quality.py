"""The quality of a table: its agreement with its teacher on texts that it was not trained on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from retain.models.embedders.static import StaticEmbedder, StaticTable
from tools.static_embedding.teacher import Matrix


def agreement(table: Path, texts: list[str], teacher_vectors: Matrix) -> float:
    """Return the correlation between the table's and the teacher's similarities over all pairs of the texts.

    Pearson's, in [-1, 1]. It is independent of dimensions and of rotations of the space. teacher_vectors: normalised.
    """
    dimensions = StaticTable.unpack(table.read_bytes()).dimensions
    vectors = np.array(asyncio.run(StaticEmbedder(table, dimensions=dimensions).embed(texts)))
    pairs = np.triu_indices(len(texts), 1)
    return float(np.corrcoef((vectors @ vectors.T)[pairs], (teacher_vectors @ teacher_vectors.T)[pairs])[0, 1])
