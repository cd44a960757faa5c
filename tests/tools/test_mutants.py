"""The mutation tests' own tool: what its operators change, that its data fits the code, and that it notices a cut."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tools.mutants.__main__ import outcomes
from tools.mutants.mutation import EVERYWHERE, Mutant, mutants
from tools.mutants.report import explanation, explanations, table, unexplained
from tools.mutants.results import Results
from tools.mutants.session import Judged, judged, nursery
from tools.mutants.wires import Cut, Explained, Wire, Wires, read_wires
from tools.paths import ROOT

WIRES = read_wires()
QUICK = "tests/test_json_text.py::test_a_depth_that_would_end_the_isolate_is_refused"
"""A test that takes no time: the tool starts pytest for each mutant."""


def made(source: str, operator: str) -> set[str]:
    return {_shown(one.source) for one in mutants("file.py", source, (f"retain/{operator}",))}


def _shown(source: str) -> str:
    return ast.unparse(ast.parse(source))


@pytest.mark.parametrize(
    ("operator", "source", "expected"),
    [
        ("CutStatement", "x = 1\ncall(x)\n", {"x = 1\npass\n"}),
        ("CutStatement", "async def f():\n    await g()\n", {"async def f():\n    pass\n"}),
        ("CutStatement", "a.b = 1\n", {"pass\n"}),
        ("CutStatement", "a['b'] = 1\n", {"pass\n"}),
        ("CutStatement", "n += 1\n", {"pass\n"}),
        ("CutStatement", "raise error\n", {"pass\n"}),
        ("CutStatement", '"""Docstring."""\nx = call()\n', set()),
        ("CutArgument", "f(1, a=2, b=3)\n", {"f(1, b=3)\n", "f(1, a=2)\n"}),
        ("CutArgument", "f(a=2)\n", {"f()\n"}),
        ("CutArgument", "f(1, 2)\n", set()),
        ("CutEntry", "d = {'a': 1, 'b': 2}\n", {"d = {'b': 2}\n", "d = {'a': 1}\n"}),
        ("CutEntry", "t = (a, b, c)\n", {"t = ( b, c)\n", "t = (a, c)\n", "t = (a, b)\n"}),
        ("CutEntry", "d = {a: b for a, b in c}\n", set()),
        (
            "CallTwice",
            "async def f():\n    x = await g()\n",
            {"async def f():\n    x = (await g(), await g())[1]\n"},
        ),
        ("ReturnNothing", "def f():\n    return 1\n", {"def f():\n    return None\n"}),
        ("ReturnNothing", "def f():\n    return None\n", set()),
        ("ChangeText", "x = 'name'\n", {"x = 'XXnameXX'\n"}),
        ("ChangeText", 'x = b"b"\n', {'x = b"XXbXX"\n'}),
        ("ChangeText", 'def f():\n    """Docstring."""\n', set()),
        ("ChangeText", "raise errors.Conflict('a message', code='a_code')\n", {
            "raise errors.Conflict('a message', code='XXa_codeXX')\n"
        }),
    ],
)  # fmt: skip
def test_an_operator_makes_each_of_its_mutants(operator: str, source: str, expected: set[str]) -> None:
    assert made(source, operator) == {_shown(one) for one in expected}


def test_a_mutant_says_what_it_changes_and_where() -> None:
    source = "def f(n):\n    for one in n:\n        break\n"
    [one] = [mutant for mutant in mutants("file.py", source, EVERYWHERE) if "Break" in mutant.operator]
    assert (one.lines(source), one.under(source)) == (("break", "continue"), "for one in n:")
    assert Mutant("file.py", "CutStatement", 1, "pass\n").under("call()\n") == ""


@pytest.mark.parametrize(
    "source",
    [
        "if TYPE_CHECKING:\n    from a import b\n",
        "_log.info('text', extra={'a': 1})\n",
        "__all__ = ['A', 'B', 'C']\n",
        "Kind = Literal['a', 'b', 'c']\n",
        "@dataclass(frozen=True, slots=True)\nclass A:\n    b: Literal['c', 'd']\n",
        "def f(a: Literal['b']) -> Literal['c']: ...\n",
    ],
)
def test_what_no_test_can_see_is_not_mutated(source: str) -> None:
    found = mutants("file.py", source, EVERYWHERE)
    assert [one.source for one in found if one.operator != "RemoveDecorator"] == []


def test_cosmic_ray_s_own_operators_are_among_them() -> None:
    source = "def f(n):\n    if n == 1 and n < 10:\n        return True\n"
    found = {one.operator for one in mutants("file.py", source, EVERYWHERE)}
    assert {"AddNot", "NumberReplacer", "ReplaceAndWithOr", "ReplaceTrueWithFalse"} <= found
    assert {"ReplaceComparisonOperator_Eq_NotEq", "ReplaceComparisonOperator_Lt_LtE"} <= found


def test_the_first_row_does_not_become_the_last() -> None:
    source = "x = rows[0] + rows[1] + rows[-2]\n"
    found = {_shown(one.source) for one in mutants("file.py", source, ("core/NumberReplacer",))}
    assert found == {
        "x = rows[1] + rows[1] + rows[-2]",
        "x = rows[0] + rows[2] + rows[-2]",
        "x = rows[0] + rows[0] + rows[-2]",
        "x = rows[0] + rows[1] + rows[-3]",
        "x = rows[0] + rows[1] + rows[-1]",
    }


def test_the_files_and_tests_of_every_wire_exist() -> None:
    named = {path for wire in WIRES.wires for path in (*wire.files, *wire.tests)}
    assert {path for path in named if not (ROOT / path).is_file()} == set()


def test_every_module_of_the_shell_is_a_wire() -> None:
    shell = {"workers/entry.py", "workers/bindings.py", "durable_objects/agent_runtime.py"}
    shell |= {str(path.relative_to(ROOT)) for path in (ROOT / "workers" / "assembly").glob("[!_]*.py")}
    assert shell <= {path for wire in WIRES.wires for path in wire.files}


@pytest.mark.parametrize("cut", WIRES.cuts, ids=lambda cut: cut.name)
def test_every_cut_made_by_hand_fits_its_file(cut: Cut) -> None:
    assert cut.wire in {wire.name for wire in WIRES.wires}
    compile(cut.applied((ROOT / cut.file).read_text()), cut.file, "exec")


@pytest.mark.parametrize("one", WIRES.explained, ids=lambda one: one.after)
def test_every_explanation_is_of_a_line_that_is_there(one: Explained) -> None:
    lines = " ".join(line.strip() for line in (ROOT / one.file).read_text().splitlines())
    assert f"{one.under} {one.before}".strip() in lines
    assert one.under or not one.before.isalpha(), "a lone keyword is in many places"
    assert one.before != one.after
    assert one.why.endswith(".")


def test_a_cut_is_noticed_by_the_tests_of_its_wire_and_never_written() -> None:
    file = "workers/retain/json_text.py"
    source = (ROOT / file).read_text()
    wire = Wire("w", (file,), (QUICK,))
    harmless, broken = source + "ADDED = 1\n", source.replace("raise", "assert 0, ")
    results = list(judged(wire, [Mutant(file, "by hand", 1, one) for one in (harmless, broken)]))
    assert [one.outcome for one in results] == ["survived", "killed"]
    assert "FAILED tests/test_json_text.py" in results[1].by
    assert (ROOT / file).read_text() == source


def judge(wire: Wire, some: Sequence[Mutant]) -> Iterator[Judged]:
    """Judge by the mutants' own names, without running a test."""
    for one in some:
        yield Judged(wire.name, one, "call()", "pass", "killed" if "killed" in one.operator else "survived", 1.0, "")


def test_each_outcome_is_kept_when_it_is_judged_and_what_was_killed_is_not_judged_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wire, kept = Wire("w", ("a.py",), ()), Results(tmp_path / "w.jsonl")
    some = [Mutant("a.py", operator, 1, "pass\n") for operator in ("killed", "survived", "not reached")]
    running = outcomes(wire, some, kept, judge, resumed=False)
    seen = [next(running), next(running)]
    running.close()  # as if it were interrupted
    assert [one.mutant for one in kept.read()] == some[:2]
    assert kept.read() == seen
    with (tmp_path / "w.jsonl").open("a") as written:
        written.write('{"wire": "w", "mut')
    capsys.readouterr()
    resumed = list(outcomes(wire, some, kept, judge, resumed=True))
    assert [one.outcome for one in resumed] == ["killed", "survived", "survived"]
    assert kept.read() == resumed
    printed = capsys.readouterr().out
    assert "w 2/3 survived: a.py:1 survived (1.0 s)\n  - call()\n  + pass\n" in printed
    assert "w 1/3" not in printed, "it was killed before"
    changed = replace(some[0], source="pass  # changed\n")
    assert [one.mutant for one in outcomes(wire, [changed], kept, judge, resumed=True)] == [changed]
    assert "w 1/1 killed" in capsys.readouterr().out, "another version of the file is judged again"


def test_tests_that_make_hypothesis_read_its_tables_can_judge(tmp_path: Path) -> None:
    drawing = tmp_path / "test_drawing.py"
    drawing.write_text(
        "from hypothesis import given, strategies as st\n\n"
        "@given(st.from_regex(r'[a-z]{3}', fullmatch=True))\n"
        "def test_it(text):\n    assert text\n"
    )
    with nursery(Wire("w", (), (str(drawing), QUICK)), []) as started:
        assert started.run({})["status"] == 0


def test_a_mutant_that_never_ends_is_killed(tmp_path: Path) -> None:
    counting = tmp_path / "test_counting.py"
    counting.write_text("from retain.json_text import ADDED\n\ndef test_it():\n    while not ADDED:\n        pass\n")
    file = "workers/retain/json_text.py"
    with nursery(Wire("w", (), (QUICK,)), [file]) as started:
        ended = started.ask(
            tests=[str(counting)],
            mutated={file: (ROOT / file).read_text() + "ADDED = False\n"},
            timeout_s=60.0,
            cpu_s=5,
        )
    assert ended["status"] != 0
    assert ended["cpu_s"] < 7.0


def test_a_wire_whose_tests_fail_without_a_mutant_is_not_judged(tmp_path: Path) -> None:
    failing = tmp_path / "test_failing.py"
    failing.write_text("def test_it():\n    assert False\n")
    wire = Wire("w", ("workers/retain/json_text.py",), (str(failing),))
    with pytest.raises(RuntimeError, match="the tests of w fail without a mutant"):
        list(judged(wire, [Mutant(wire.files[0], "by hand", 1, "")]))


def test_survivors_are_reported_until_they_are_explained() -> None:
    mutant = Mutant("a.py", "CutStatement", 1, "pass\n")
    results = [Judged("w", mutant, "call()", "pass", outcome, 1.0, "") for outcome in ("killed", "survived")]
    wire = Wire("w", ("a.py",), ())
    bare = Wires((wire,), (), ())
    explained = Wires((wire,), (), (Explained("a.py", "call()", "pass", "It has no effect."),))
    assert [len(unexplained(results, one)) for one in (bare, explained)] == [1, 0]
    assert explanation(results[0], explained) == "It has no effect."
    elsewhere = Wires((wire,), (), (Explained("a.py", "call()", "pass", "It has no effect.", under="if x:"),))
    assert [explanation(replace(results[1], under=under), elsewhere) for under in ("if x:", "if y:")] == [
        "It has no effect.",
        None,
    ]
    assert table(results, explained).splitlines()[2:] == [
        "| w | 2 | 1 (50.0%) | 1 | 1 |",
        "| all | 2 | 1 (50.0%) | 1 | 1 |",
    ]


def test_a_wire_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no wire named nothing: entry, assembly"):
        WIRES.chosen(["nothing"])
    assert [wire.name for wire in WIRES.chosen(["brief", "entry"])] == ["brief", "entry"]


def test_the_page_lists_every_explanation() -> None:
    assert explanations(WIRES) in (ROOT / "docs" / "testing.md").read_text()
