"""Write functions of Python's standard library, asked for by their own first sentences, as `benchmarks.recall` measures.

What a coding assistant keeps: code, which is asked for in words. Each function that is documented in a sentence of five
words or more is a record outside conversations, without that documentation, which is the question. No data is needed: the
files are those of the Python that runs this, so figures of two versions of Python differ.

    python -m benchmarks.functions folder --questions 600
    python -m benchmarks.recall folder --check
"""

from __future__ import annotations

import argparse
import ast
import random
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

from benchmarks.recall import write

LIBRARY = Path(sysconfig.get_path("stdlib"))
LEAST_WORDS = 5
MOST_CHARACTERS = 300
_LEFT_OUT = frozenset({"test", "tests", "site-packages", "idlelib", "lib2to3"})
_SEED = 7


def functions(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the documentation's first sentence or paragraph, and the code without documentation, of each function."""
    for path in sorted([*folder.glob("*.py"), *folder.glob("*/*.py")]):
        if _LEFT_OUT.isdisjoint(path.relative_to(folder).parts):
            source = path.read_text("utf-8", "replace")
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (found := _split(node, source)):
                    yield found


def _split(node: ast.FunctionDef | ast.AsyncFunctionDef, source: str) -> tuple[str, str] | None:
    documented = ast.get_docstring(node)
    if documented is None or len(node.body) < 3:
        return None
    asked = " ".join(documented.split("\n\n")[0].split())
    if len(asked.split()) < LEAST_WORDS or len(asked) > MOST_CHARACTERS:
        return None
    lines = source.splitlines()
    head, rest = lines[node.lineno - 1 : node.body[0].lineno - 1], lines[node.body[1].lineno - 1 : node.end_lineno]
    return asked, dedent("\n".join([*head, *rest]))


def memory(folder: Path, questions: int) -> dict[str, Any]:
    """Return a memory of all functions, and so many of them asked for, at random."""
    every = list(functions(folder))
    items = [
        {"id": f"{number}", "session": None, "at": "", "speaker": None, "text": code}
        for number, (_, code) in enumerate(every)
    ]
    chosen = random.Random(_SEED).sample(range(len(every)), min(questions, len(every)))
    asked = [
        {"text": every[number][0], "category": "code", "before": None, "evidence": [f"{number}"]} for number in chosen
    ]
    return {"items": items, "questions": asked}


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write Python's own functions in the form of benchmarks.recall.")
    parser.add_argument("into", type=Path, help="the folder to write to")
    parser.add_argument("--questions", type=int, default=600, help="how many functions are asked for (600)")
    options = parser.parse_args()
    write(options.into / "functions.jsonl.gz", iter([memory(LIBRARY, options.questions)]))


if __name__ == "__main__":
    main()
