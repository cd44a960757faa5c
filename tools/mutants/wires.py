"""Which files are wires, which tests judge them, and which mutants are explained: the data in `wires.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).with_name("wires.toml")


@dataclass(frozen=True, slots=True)
class Wire:
    """Files that are mutated, and the tests that must see it. defaults: whether only their default values are mutated."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    defaults: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """A mutant made by hand. find: text that occurs once in the file. put: what replaces it. wire: whose tests judge it."""

    name: str
    wire: str
    file: str
    find: str
    put: str

    def applied(self, source: str) -> str:
        """Return the mutated source. Raises: ValueError when the text does not occur once."""
        if source.count(self.find) != 1:
            raise ValueError(f"{self.name}: {self.file} has {self.find!r} {source.count(self.find)} times")
        return source.replace(self.find, self.put)


@dataclass(frozen=True, slots=True)
class Explained:
    """A mutant that no test can see, or need not. before, after: the changed lines. why: the reason.

    under: the line above the change, for a change that its own lines do not identify; "" for any.
    """

    file: str
    before: str
    after: str
    why: str
    under: str = ""


@dataclass(frozen=True, slots=True)
class Wires:
    """The whole configuration."""

    wires: tuple[Wire, ...]
    cuts: tuple[Cut, ...]
    explained: tuple[Explained, ...]

    def chosen(self, names: list[str]) -> list[Wire]:
        """Return the wires with these names, all for none. Raises: ValueError for an unknown name."""
        known = {wire.name: wire for wire in self.wires}
        unknown = sorted(set(names) - set(known))
        if unknown:
            raise ValueError(f"there is no wire named {', '.join(unknown)}: {', '.join(known)}")
        return [known[name] for name in names] if names else list(self.wires)


def read_wires(path: Path = DATA) -> Wires:
    """Return the configuration."""
    content = tomllib.loads(path.read_text())
    wires = [
        Wire(name, tuple(entry["files"]), tuple(entry["tests"]), entry.get("defaults", False))
        for name, entry in content["wires"].items()
    ]
    cuts = [Cut(**entry) for entry in content["cuts"]]
    explained = [
        Explained(file, **entry) for file, entries in content.get("explained", {}).items() for entry in entries
    ]
    return Wires(tuple(wires), tuple(cuts), tuple(explained))
