"""all-MiniLM-L6-v2 in numpy: a BERT encoder of six layers, mean pooling.

Source: https://arxiv.org/abs/1810.04805 (the encoder), https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2
(the pooling).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from scipy.special import erf

from retain.models.embedders.wordpiece import MAX_WORD_CHARACTERS, words

Matrix: TypeAlias = NDArray[np.float32]

_BATCH_TOKENS = 4096


class Teacher:
    """The model and its vocabulary. folder: as `sources.teacher_folder` returns it."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.vocabulary = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        self._number = {piece: number for number, piece in enumerate(self.vocabulary)}
        self._weights: dict[str, Matrix] = load_file(str(folder / "model.safetensors"))
        self._layers = int(config["num_hidden_layers"])
        self._heads = int(config["num_attention_heads"])
        self._epsilon = float(config["layer_norm_eps"])
        self.dimensions = int(config["hidden_size"])

    def tokens(self, text: str, limit: int = 64) -> list[int]:
        """Return the numbers of the text's pieces between [CLS] and [SEP], at most `limit` including those."""
        pieces = [piece for word in words(text) for piece in self._split(word)]
        return [self._number["[CLS]"], *pieces[: limit - 2], self._number["[SEP]"]]

    def _split(self, word: str) -> list[int]:
        # As in BERT, one unknown part makes the whole word unknown.
        pieces: list[int] = []
        start = 0
        while start < len(word) <= MAX_WORD_CHARACTERS:
            prefix = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if prefix + word[start:end] in self._number), None)
            if end is None:
                return [self._number["[UNK]"]]
            pieces.append(self._number[prefix + word[start:end]])
            start = end
        return pieces or [self._number["[UNK]"]]

    def embed(self, sequences: Sequence[Sequence[int]], progress: Callable[[int], None] = lambda _done: None) -> Matrix:
        """Return the mean of the last layer's outputs for each sequence of tokens, not normalised.

        Sequences of equal length are computed together, so that none is padded and no result depends on the others.
        progress: called with the number of sequences done.
        """
        pooled: np.ndarray = np.zeros((len(sequences), self.dimensions), np.float32)
        order = sorted(range(len(sequences)), key=lambda place: len(sequences[place]))
        done = 0
        for length, places in groupby(order, key=lambda place: len(sequences[place])):
            group = list(places)
            size = max(1, _BATCH_TOKENS // length)
            for start in range(0, len(group), size):
                batch = group[start : start + size]
                pooled[batch] = self._encode(np.array([sequences[place] for place in batch])).mean(axis=1)
                done += len(batch)
                progress(done)
        return pooled

    def _encode(self, tokens: NDArray[np.int64]) -> Matrix:
        weights = self._weights
        hidden = (
            weights["embeddings.word_embeddings.weight"][tokens]
            + weights["embeddings.position_embeddings.weight"][: tokens.shape[1]]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = self._normalise("embeddings.LayerNorm", hidden)
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}"
            attended = self._linear(f"{name}.attention.output.dense", self._attend(f"{name}.attention.self", hidden))
            hidden = self._normalise(f"{name}.attention.output.LayerNorm", hidden + attended)
            inner = _gelu(self._linear(f"{name}.intermediate.dense", hidden))
            hidden = self._normalise(f"{name}.output.LayerNorm", hidden + self._linear(f"{name}.output.dense", inner))
        return hidden

    def _attend(self, name: str, hidden: Matrix) -> Matrix:
        batch, length, width = hidden.shape
        query, key, value = (
            self._linear(f"{name}.{part}", hidden).reshape(batch, length, self._heads, -1).swapaxes(1, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.swapaxes(2, 3) / np.float32(math.sqrt(width / self._heads))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = scores / scores.sum(axis=-1, keepdims=True) @ value
        reshaped: Matrix = mixed.swapaxes(1, 2).reshape(batch, length, width)
        return reshaped

    def _linear(self, name: str, values: Matrix) -> Matrix:
        flat = values.reshape(-1, values.shape[-1]) @ self._weights[f"{name}.weight"].T
        return (flat + self._weights[f"{name}.bias"]).reshape(*values.shape[:-1], -1)

    def _normalise(self, name: str, values: Matrix) -> Matrix:
        centred = values - values.mean(axis=-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._epsilon)
        normal: Matrix = centred / scale * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normal


def _gelu(values: Matrix) -> Matrix:
    curved: Matrix = values * np.float32(0.5) * (1 + erf(values / np.float32(math.sqrt(2))))
    return curved
