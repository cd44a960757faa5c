"""Distillation: rows for word pieces whose sums approximate the teacher's vectors of whole texts.

Seed rows are the teacher's outputs for single pieces, with less weight for frequent pieces (as in Model2Vec and SIF);
ridge regression on texts then adjusts them.
Source: https://github.com/MinishLab/model2vec, https://openreview.net/forum?id=SyK00v5xx
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tools.static_embedding.teacher import Matrix, Teacher

_FREQUENCY_SCALE = 1e-3
_RIDGE = 0.1
_ROUNDS = 2
_STEPS = 40


def kept_pieces(vocabulary: Sequence[str]) -> list[int]:
    """Return the numbers of the pieces that get a row: printable ASCII, without the model's special tokens."""
    return [
        number
        for number, piece in enumerate(vocabulary)
        if piece.isascii()
        and piece.isprintable()
        and not (piece.startswith("[") and piece.endswith("]") and len(piece) > 1)
    ]


def seed_rows(teacher: Teacher, kept: Sequence[int]) -> Matrix:
    """Return one row per kept piece: the teacher's output for it alone, centred, times a / (a + p) for its frequency p.

    Frequencies follow Zipf's law by the piece's rank, because BERT's vocabulary is in order of frequency.
    """
    before, after = teacher.tokens("")
    rows = teacher.embed([[before, piece, after] for piece in kept])
    rows -= rows.mean(axis=0)
    frequency = 1 / (np.arange(len(kept)) + 2.7)
    frequency /= frequency.sum()
    weighted: Matrix = rows * (_FREQUENCY_SCALE / (_FREQUENCY_SCALE + frequency))[:, None].astype(np.float32)
    return weighted


def count_pieces(sequences: Sequence[Sequence[int]], kept: Sequence[int], vocabulary_size: int) -> sparse.csr_matrix:
    """Return how often each text (a row) has each kept piece (a column)."""
    column = np.full(vocabulary_size, -1)
    column[list(kept)] = np.arange(len(kept))
    columns = [column[np.asarray(sequence)] for sequence in sequences]
    columns = [found[found >= 0] for found in columns]
    ends = np.concatenate([[0], np.cumsum([len(found) for found in columns])])
    entries = np.ones(ends[-1], np.float32)
    return sparse.csr_matrix((entries, np.concatenate(columns), ends), shape=(len(sequences), len(kept)))


def fit_rows(counts: sparse.csr_matrix, target: Matrix, rows: Matrix, report: Callable[[str], None]) -> Matrix:
    """Return rows W that minimise |X W - Y|^2 + ridge * |W - c * seed|^2, solved twice, each time from the previous W.

    X is `counts` with each text scaled so that its sum has length one under the current rows; Y the centred `target`; c
    the factor that brings the seed's sums closest to Y.
    """
    for number in range(1, _ROUNDS + 1):
        lengths = np.linalg.norm(counts @ rows, axis=1)
        scaled = sparse.diags((1 / (lengths + 1e-6)).astype(np.float32)) @ counts
        sums = scaled @ rows
        seed = (rows * ((sums * target).sum() / (sums * sums).sum())).astype(np.float32)
        rows = _solve((scaled.T @ scaled).tocsr(), scaled.T @ target + _RIDGE * seed, seed)
        report(f"round {number}: mean cosine to the teacher {_mean_cosine(scaled @ rows, target):.3f}")
    return rows


def _solve(gram: sparse.csr_matrix, right: Matrix, start: Matrix) -> Matrix:
    """Solve (gram + ridge) W = right by conjugate gradients with Jacobi preconditioning, all columns at once.

    Source: https://en.wikipedia.org/wiki/Conjugate_gradient_method#The_preconditioned_conjugate_gradient_method
    """
    diagonal = (gram.diagonal() + _RIDGE)[:, None]
    solution = start.copy()
    residual = right - (gram @ solution + _RIDGE * solution)
    conditioned = residual / diagonal
    direction = conditioned.copy()
    product = (residual * conditioned).sum(axis=0)
    for _ in range(_STEPS):
        image = gram @ direction + _RIDGE * direction
        step = product / ((direction * image).sum(axis=0) + 1e-20)
        solution += direction * step
        residual -= image * step
        conditioned = residual / diagonal
        following = (residual * conditioned).sum(axis=0)
        direction = conditioned + direction * (following / (product + 1e-20))
        product = following
    return solution


def reduce_dimensions(rows: Matrix, target: Matrix, dimensions: int) -> Matrix:
    """Return the rows along the `dimensions` directions in which the teacher's vectors vary most."""
    _, directions = np.linalg.eigh(target.T @ target)
    reduced: Matrix = rows @ directions[:, ::-1][:, :dimensions]
    return reduced


def quantise(rows: Matrix, bits: int) -> NDArray[np.int8]:
    """Return the rows as whole numbers of `bits` bits. All have the same scale, which cancels when sums are normalised.

    The few largest values are clipped, more of them the coarser the steps are.
    """
    largest = 2 ** (bits - 1) - 1
    limit = np.quantile(np.abs(rows), 0.9999 if bits == 8 else 0.995)
    whole: NDArray[np.int8] = np.clip(np.round(rows / limit * largest), -largest, largest).astype(np.int8)
    return whole


def _mean_cosine(left: Matrix, right: Matrix) -> float:
    lengths = np.linalg.norm(left, axis=1).clip(1e-9) * np.linalg.norm(right, axis=1)
    return float(((left * right).sum(axis=1) / lengths).mean())
