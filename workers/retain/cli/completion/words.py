"""What can be typed after `retain`: read from the parsers of the subcommands themselves, so that nothing is listed twice."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import NoReturn


@dataclass(frozen=True, slots=True)
class Words:
    """What may follow a word. words: the next ones, with their help. options: with the values that each allows."""

    words: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Sequence[str]] = field(default_factory=dict)
    after: Mapping[str, Words] = field(default_factory=dict)


class _Found(Exception):
    """A subcommand's parser, at the moment when it would read the arguments."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__("found")
        self.parser = parser


def words_of(module: str) -> Words:
    """Return what may follow a subcommand, nothing for one whose module cannot be imported here."""
    try:
        loaded = import_module(module)
    except ModuleNotFoundError:
        return Words()
    with _found_before_reading():
        try:
            loaded.main(["--help"])
        except _Found as found:
            return _words(found.parser)
    raise AssertionError(f"{module} reads no arguments")


@contextmanager
def _found_before_reading() -> Iterator[None]:
    usual = argparse.ArgumentParser.parse_args

    def parse_args(parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Found(parser)

    argparse.ArgumentParser.parse_args = parse_args  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        argparse.ArgumentParser.parse_args = usual  # type: ignore[method-assign]


def _words(parser: argparse.ArgumentParser) -> Words:
    words: dict[str, str] = {}
    options: dict[str, Sequence[str]] = {}
    after: dict[str, Words] = {}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helped = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, inner in action.choices.items():
                words[name] = helped.get(name, "")
                after[name] = _words(inner)
        for option in action.option_strings:
            if option.startswith("--"):
                options[option] = [str(choice) for choice in action.choices or ()]
    return Words(words, options, after)
