"""Write paragraphs of an encyclopedia with questions, in twelve languages, in the form that `benchmarks.recall` measures.

*XQuAD* (CC BY-SA 4.0, https://github.com/google-deepmind/xquad): 240 paragraphs and 1,190 questions, each in all of its
languages. It stays outside the repository, and no weight of recall was chosen on it. A paragraph is a record outside
conversations; a question has one that answers it. With `--asked` the questions are in another language than the
paragraphs.

    python -m benchmarks.passages path/to/xquad folder --languages en ro vi
    python -m benchmarks.passages path/to/xquad folder --languages en --asked de
    python -m benchmarks.recall folder --table static-multilingual-256
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.recall import write
from retain.json_text import read_own_json

LANGUAGES = ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh")


def paragraphs(folder: Path, language: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each paragraph with its id, the same in all languages."""
    for number, article in enumerate(read_own_json((folder / f"xquad.{language}.json").read_text())["data"]):
        for place, paragraph in enumerate(article["paragraphs"]):
            yield f"{number}:{place}", paragraph


def memory(folder: Path, language: str, asked: str, every: int) -> dict[str, Any]:
    """Return a memory of all paragraphs of a language, and every so manieth question in the language that is asked."""
    items = [
        {"id": one, "session": None, "at": "", "speaker": None, "text": paragraph["context"]}
        for one, paragraph in paragraphs(folder, language)
    ]
    questions = (
        {"text": question["question"], "category": asked, "before": None, "evidence": [one]}
        for one, paragraph in paragraphs(folder, asked)
        for question in paragraph["qas"]
    )
    return {"items": items, "questions": [*islice(questions, every - 1, None, every)]}


def main() -> None:
    """Write a file for each language."""
    parser = argparse.ArgumentParser(description="Write XQuAD in the form of benchmarks.recall.")
    parser.add_argument("data", type=Path, help="a clone of XQuAD")
    parser.add_argument("into", type=Path, help="the folder to write to")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=LANGUAGES, help="of the paragraphs")
    parser.add_argument("--asked", choices=LANGUAGES, help="the questions' language (the paragraphs')")
    parser.add_argument("--every", type=int, default=4, help="one question of so many (4)")
    options = parser.parse_args()
    for language in options.languages:
        asked = options.asked or language
        name = language if asked == language else f"{language}-asked-{asked}"
        write(options.into / f"xquad-{name}.jsonl.gz", iter([memory(options.data, language, asked, options.every)]))


if __name__ == "__main__":
    main()
