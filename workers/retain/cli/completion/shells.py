"""Print what completes `retain` in a shell.

eval "$(retain completion bash)"              # in ~/.bashrc
eval "$(retain completion zsh)"               # in ~/.zshrc, after compinit
retain completion fish | source               # in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence

from retain.cli.command import SUBCOMMANDS
from retain.cli.completion.words import Words, words_of


def every_word() -> Words:
    """Return what may follow `retain`."""
    names = {subcommand.name: subcommand.help for subcommand in SUBCOMMANDS}
    after = {subcommand.name: words_of(subcommand.module) for subcommand in SUBCOMMANDS}
    return Words(names, {"--help": (), "--version": ()}, after)


def bash(every: Words) -> str:
    """Return the function for bash. Where nothing fits, bash completes names of files."""
    return "\n".join(
        (
            "_retain() {",
            '  local current="${COMP_WORDS[COMP_CWORD]}" words="" word path=""',
            '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do [[ $word == -* ]] || path+=" $word"; done',
            *_cases(every, '${path# }"'),
            '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "complete -o default -F _retain retain",
            "",
        )
    )


def zsh(every: Words) -> str:
    """Return the function for zsh. Where nothing fits, zsh completes names of files."""
    return "\n".join(
        (
            "_retain() {",
            '  local current="${words[CURRENT]}" word trail=""',
            "  local -a typed; typed=(${words[2,CURRENT-1]})",
            '  for word in $typed; do [[ $word == -* ]] || trail+=" $word"; done',
            "  local words=''",
            *_cases(every, '${trail# }"'),
            "  local -a found; found=(${=words})",
            "  compadd -- $found || _files",
            "}",
            "compdef _retain retain",
            "",
        )
    )


def fish(every: Words) -> str:
    """Return the lines for fish."""
    lines = ["complete -c retain -f"]
    for path, following in _paths(every):
        seen = [f"__fish_seen_subcommand_from {word}" for word in path]
        later = [f"not __fish_seen_subcommand_from {' '.join(following.words)}"] if following.words else []
        condition = shlex.quote("; and ".join([*seen, *later]) or "true")
        for word, described in following.words.items():
            lines.append(f"complete -c retain -n {condition} -a {word} -d {shlex.quote(described)}")
        for option, values in following.options.items():
            allowed = f" -xa {shlex.quote(' '.join(values))}" if values else ""
            lines.append(f"complete -c retain -n {condition} -l {option.removeprefix('--')}{allowed}")
        if path and not following.words:
            lines.append(f"complete -c retain -n {condition} -F")
    return "\n".join((*lines, ""))


def _paths(words: Words, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Words]]:
    """Yield each sequence of words, and what may follow it."""
    yield path, words
    for word, following in words.after.items():
        yield from _paths(following, (*path, word))


def _cases(every: Words, typed: str) -> Iterator[str]:
    """Yield the lines that set `words` to what may follow the words that were typed. Arguments may follow those."""
    yield f'  case "{typed} in'
    for path, following in sorted(_paths(every), key=lambda found: -len(found[0])):
        pattern = shlex.quote(" ".join(path))
        pattern += f"|{shlex.quote(' '.join(path) + ' ')}*" if path else ""
        words = " ".join((*following.words, *following.options))
        yield f"    {pattern}) words={shlex.quote(words)};;"
    yield "  esac"


_SHELLS = {"bash": bash, "zsh": zsh, "fish": fish}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the completion of a shell; return the process's exit status."""
    parser = argparse.ArgumentParser(
        prog="retain completion",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=_SHELLS)
    print(_SHELLS[parser.parse_args(arguments).shell](every_word()), end="")
    return 0
