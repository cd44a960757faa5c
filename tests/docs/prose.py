"""The prose of the project's files: pages, docstrings, comments, and the messages that a program shows to people."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`[^`\n]+`")
_TARGET = re.compile(r"\]\([^)\s]+\)")
_SQL_COMMENT = re.compile(r"--[^\n]*")
_HASH_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")
# Strings come first, so that `//` in an address is not taken for a comment.
_JS_COMMENT = re.compile(
    r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|(//[^\n]*|/\*.*?\*/)", re.DOTALL
)
_READ = {".md", ".py", ".sql", ".js", ".mjs", ".toml", ".yaml"}
_SHOWN_BY = {"print", "fail", "exit", "error", "SystemExit", "describe"}
_SHOWN_AS = {"help", "description", "epilog", "detail", "message"}


@dataclass(frozen=True)
class Passage:
    """A piece of prose. line: of its first line in the file, from 1."""

    line: int
    text: str


@dataclass(frozen=True)
class Name:
    """A name that a Python file defines. line: where, from 1."""

    line: int
    text: str


def passages(path: Path) -> Iterator[Passage]:
    """Yield the prose of a file by its suffix; code spans in it read as "`". Nothing for other kinds of file."""
    if path.suffix not in _READ:
        return
    text = path.read_text()
    match path.suffix:
        case ".md":
            yield Passage(1, _without_code(text))
        case ".py":
            yield from _python(text)
        case ".sql":
            yield from _comments(text, _SQL_COMMENT)
        case ".js" | ".mjs":
            yield from (
                Passage(_line(text, match.start(1)), _without_code(match[1]))
                for match in _JS_COMMENT.finditer(text)
                if match[1]
            )
        case _:
            yield from _comments(text, _HASH_COMMENT)


def names(path: Path) -> Iterator[Name]:
    """Yield the names that a Python file defines: its own, and those of its functions, classes, parameters, variables."""
    if path.suffix != ".py":
        return
    yield Name(1, path.stem)
    for node in _nodes(path.read_text()):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield Name(node.lineno, node.name)
            case ast.arg():
                yield Name(node.lineno, node.arg)
            case ast.Name(ctx=ast.Store()):
                yield Name(node.lineno, node.id)
            case ast.Attribute(ctx=ast.Store()):
                yield Name(node.lineno, node.attr)


@lru_cache(maxsize=1)
def _nodes(text: str) -> list[ast.AST]:
    """Return every node of a module, which is read for its prose and then for its names."""
    return list(ast.walk(ast.parse(text)))


def _without_code(text: str) -> str:
    """Blank out fenced blocks, code spans and the targets of links; keep the lines."""
    text = _FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), text)
    return _TARGET.sub("]", _SPAN.sub("`", text))


def _line(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def _comments(text: str, pattern: re.Pattern[str]) -> Iterator[Passage]:
    """Yield comments; those on adjacent lines are one passage."""
    first, last, lines = 0, -1, list[str]()
    for comment in pattern.finditer(text):
        line = _line(text, comment.start())
        if lines and line != last + 1:
            yield Passage(first, _without_code("\n".join(lines)))
            lines = []
        first = line if not lines else first
        lines.append(comment[0].strip("-# "))
        last = line
    if lines:
        yield Passage(first, _without_code("\n".join(lines)))


def _python(text: str) -> Iterator[Passage]:
    comments = "\n".join(_only_comments(text))
    yield from _comments(comments, _HASH_COMMENT)
    for node in _nodes(text):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield Passage(node.lineno, _without_code(docstring))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield Passage(node.lineno, name.replace("_", " "))
            case ast.Raise(exc=ast.Call(args=[first, *_])):
                yield from _shown(first)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _SHOWN_BY:
                yield from (passage for argument in node.args for passage in _shown(argument))
            case ast.keyword(arg=name) if name in _SHOWN_AS:
                yield from _shown(node.value)


def _only_comments(text: str) -> list[str]:
    """Return the file's lines with their comments alone."""
    lines = [""] * (text.count("\n") + 2)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = token.string
    return lines


def _shown(node: ast.expr) -> Iterator[Passage]:
    """Yield a literal text, or the literal parts of an f-string with "…" for its values."""
    match node:
        case ast.Constant(value=str(text)):
            yield Passage(node.lineno, text)
        case ast.JoinedStr(values=values):
            parts = (str(part.value) if isinstance(part, ast.Constant) else "…" for part in values)
            yield Passage(node.lineno, "".join(parts))
        case _:
            return
