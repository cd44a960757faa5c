"""`retain export` and `import`: a file is whole or not there, and is sent in parts that are imported once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from retain.cli.moving import export, importing
from retain.lifecycle.transfer.lines import MAX_BYTES, MAX_ITEM_LINES, MAX_LINES
from tests.cli.answering import Run, Server

EXPORT, IMPORT = "/admin/tenants/acme/export", "/admin/tenants/acme/import"
PAGE = '{"kind":"page","version":1,"tenant":"acme","cursor":null}\n'
FIRST_PAGE = PAGE.replace("null", '"c0"')
RECORD = '{"kind":"record"}\n'
DONE = {"created": 2, "unchanged": 0, "events": 2}


def _pages(server: Server, *texts: str) -> None:
    server.answers[EXPORT] = [httpx.Response(200, text=text) for text in texts]


def test_an_export_has_all_pages_and_its_counts(server: Server, run: Run, tmp_path: Path) -> None:
    _pages(server, RECORD + FIRST_PAGE, RECORD + PAGE.strip())
    file = tmp_path / "acme.jsonl"
    assert run(export.main, str(file)) == (0, "record 2\n", "")
    assert file.read_text() == RECORD + FIRST_PAGE + RECORD + PAGE
    assert [dict(request.url.params) for request in server.asked] == [{}, {"cursor": "c0"}]
    assert list(tmp_path.iterdir()) == [file]


def test_a_line_separator_in_a_text_ends_no_line_of_an_export(server: Server, run: Run, tmp_path: Path) -> None:
    text = '{"kind":"record","content":"a\u2028b\u0085c"}\n' + PAGE
    _pages(server, text)
    assert run(export.main, str(tmp_path / "acme.jsonl")) == (0, "record 1\n", "")
    assert (tmp_path / "acme.jsonl").read_bytes() == text.encode()


def test_what_is_not_an_export_gets_no_file_of_its_name(server: Server, run: Run, tmp_path: Path) -> None:
    _pages(server, "<html>\n<p>Welcome")
    status, printed, reported = run(export.main, str(tmp_path / "acme.jsonl"))
    assert (status, printed, reported.count("\n")) == (5, "", 1)
    assert not (tmp_path / "acme.jsonl").exists()


def test_an_import_that_something_else_answered_is_not_done(server: Server, run: Run, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(PAGE)
    server.answers[IMPORT] = [(200, "<html>")]
    status, printed, _ = run(importing.main, str(tmp_path / "f"))
    assert (status, printed) == (5, "")


def test_an_export_to_standard_output_has_nothing_between_its_lines(server: Server, run: Run) -> None:
    _pages(server, RECORD + PAGE)
    assert run(export.main, "-", "--json") == (0, RECORD + PAGE, '{"record": 1}\n')


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return for how many seconds a command waited, each time; it does not wait."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    return waited


DOWN = (503, {"code": "d1_unavailable", "detail": "D1 did not answer"})


def test_an_export_of_many_pages_survives_answers_that_fail_for_a_moment(
    server: Server, run: Run, tmp_path: Path, waited: list[float]
) -> None:
    limited = httpx.Response(429, json={"code": "rate_limited", "detail": "too many"}, headers={"retry-after": "7"})
    first, last = (httpx.Response(200, text=RECORD + page) for page in (FIRST_PAGE, PAGE))
    server.answers[EXPORT] = [first, DOWN, limited, httpx.Response(502, text="<html>"), last]
    status, printed, reported = run(export.main, str(tmp_path / "acme.jsonl"))
    assert (status, printed) == (0, "record 2\n")
    assert (tmp_path / "acme.jsonl").read_text() == RECORD + FIRST_PAGE + RECORD + PAGE
    assert waited == [1, 7, 4]
    assert reported.startswith("D1 did not answer (d1_unavailable): asked again in 1 s\n")
    assert [dict(request.url.params) for request in server.asked] == [{}] + [{"cursor": "c0"}] * 4


def test_an_import_of_many_parts_survives_an_answer_that_fails_for_a_moment(
    server: Server, run: Run, tmp_path: Path, waited: list[float]
) -> None:
    (tmp_path / "f").write_text(RECORD * MAX_LINES + RECORD + PAGE)
    server.answers[IMPORT] = [(200, DONE), DOWN, DOWN, (200, DONE)]
    status, printed, _ = run(importing.main, str(tmp_path / "f"))
    assert (status, printed, waited) == (0, "created 4, events 4\n", [1, 2])
    assert len({request.content for request in server.asked[1:]}) == 1


@pytest.mark.parametrize(("first", "answers"), [(DOWN, 1), ((200, DONE), 7)])
def test_an_import_whose_deployment_stays_away_ends(
    server: Server, run: Run, tmp_path: Path, waited: list[float], first: tuple[int, object], answers: int
) -> None:
    (tmp_path / "f").write_text(RECORD * MAX_LINES + RECORD + PAGE)
    server.answers[IMPORT] = [first, *[DOWN] * 6]
    assert run(importing.main, str(tmp_path / "f"))[0] == 1
    assert (len(server.asked), waited) == (answers, [1, 2, 4, 8, 16] if answers > 1 else [])


def test_an_export_that_breaks_off_leaves_no_file_of_its_name(
    server: Server, run: Run, tmp_path: Path, waited: list[float]
) -> None:
    server.answers[EXPORT] = [httpx.Response(200, text=RECORD + FIRST_PAGE), *[(503, {"code": "x"})] * 6]
    assert run(export.main, str(tmp_path / "acme.jsonl"))[0] == 1
    [part] = tmp_path.iterdir()
    assert (part.name.startswith("acme.jsonl."), part.suffix, part.read_text()) == (True, ".part", RECORD + FIRST_PAGE)


def test_an_export_that_ends_before_its_first_page_leaves_nothing(
    server: Server, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(export.main, str(tmp_path / "acme.jsonl"))[0] == 5
    assert [*tmp_path.iterdir()] == []

    def interrupted(*_: object) -> httpx.Response:
        assert len([*tmp_path.iterdir()]) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(export.main, str(tmp_path / "acme.jsonl"))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("cut", ["", RECORD], ids=["empty", "without its last line"])
def test_a_page_that_is_cut_off_is_not_the_end_of_an_export(server: Server, run: Run, tmp_path: Path, cut: str) -> None:
    _pages(server, RECORD + FIRST_PAGE, cut)
    status, printed, reported = run(export.main, str(tmp_path / "acme.jsonl"))
    assert (status, printed) == (5, "")
    assert "cut off" in reported
    assert not (tmp_path / "acme.jsonl").exists()


def test_an_export_to_a_file_that_another_one_is_writing_changes_nothing_of_it(
    server: Server, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "acme.jsonl"
    _pages(server, RECORD + FIRST_PAGE, PAGE)
    answered = Server._answer
    statuses: list[int] = []

    def other_first(self: Server, request: httpx.Request) -> httpx.Response:
        if request.url.params.get("cursor") and not statuses:
            statuses.append(0)
            other = Server()
            _pages(other, PAGE)
            with monkeypatch.context() as patch:
                patch.setattr("os.getpid", lambda: 0)
                statuses[0] = export.main([str(file), "--tenant", "acme"], other.connect)
        return answered(self, request)

    monkeypatch.setattr(Server, "_answer", other_first)
    assert run(export.main, str(file))[0] == 2
    assert (statuses, file.read_text()) == ([0], PAGE)


def test_an_export_never_overwrites(server: Server, run: Run, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("mine")
    assert run(export.main, str(tmp_path / "kept"))[0] == 2
    assert run(export.main, str(tmp_path / "no" / "folder"))[0] == 2
    assert (tmp_path / "kept").read_text() == "mine"


def test_a_user_s_export_is_asked_for_by_the_user(server: Server, run: Run) -> None:
    server.answers["/admin/tenants/acme/users/a|b/export"] = [httpx.Response(200, text=RECORD + PAGE)]
    assert run(export.main, "-", "--user", "a|b")[0] == 0
    assert server.asked[0].url.raw_path.startswith(b"/admin/tenants/acme/users/a%7Cb/export")
    assert run(export.main, "-", "--user", "a b")[0] == 2


def test_an_import_is_sent_in_parts_of_the_allowed_size(server: Server, run: Run, tmp_path: Path) -> None:
    long = json.dumps({"kind": "record", "content": "x" * (MAX_BYTES // 2)})
    (tmp_path / "f").write_text(RECORD * (MAX_LINES + 1) + f"{long}\n\n{long}\n{PAGE}")
    server.answers[IMPORT] = [(200, DONE)] * 3
    assert run(importing.main, str(tmp_path / "f"), "--include-erased") == (0, "created 6, events 6\n", "")
    sizes = [(len(request.content.splitlines()), len(request.content)) for request in server.asked]
    assert [lines for lines, _ in sizes] == [MAX_LINES, 2, 2]
    assert all(size <= MAX_BYTES for _, size in sizes)
    assert {request.url.params["include_erased"] for request in server.asked} == {"true"}
    assert server.asked[0].headers["content-type"] == "application/x-ndjson"


def test_an_import_is_sent_in_parts_with_no_more_items_than_allowed(server: Server, run: Run, tmp_path: Path) -> None:
    item = json.dumps({"kind": "item", "item": {"key": "shop:acme:s:cart:c"}}) + "\n"
    (tmp_path / "f").write_text(RECORD * 250 + item * (MAX_ITEM_LINES + 1) + RECORD * 250 + PAGE)
    server.answers[IMPORT] = [(200, DONE)] * 2
    assert run(importing.main, str(tmp_path / "f")) == (0, "created 4, events 4\n", "")
    parts = [request.content.decode().splitlines() for request in server.asked]
    assert [len(part) for part in parts] == [250 + MAX_ITEM_LINES, 252]
    assert [sum('"item"' in line for line in part) for part in parts] == [MAX_ITEM_LINES, 1]


def test_of_an_export_of_any_size_one_part_is_read_at_a_time(
    server: Server, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The export of a tenant with 100,000 memories, which has 200 MB, took 1.9 GB to be imported."""
    sent: list[int] = []

    def lines() -> Iterator[str]:
        for _ in range(3 * MAX_LINES):
            sent.append(len(server.asked))
            yield RECORD
        yield PAGE

    monkeypatch.setattr(sys, "stdin", lines())
    server.answers[IMPORT] = [(200, DONE)] * 4
    assert run(importing.main, "-") == (0, "created 8, events 8\n", "")
    assert [sent[MAX_LINES * part + 1] for part in range(3)] == [0, 1, 2]


def test_a_file_that_turns_out_to_be_unreadable_is_named(server: Server, run: Run, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(RECORD.encode() + b"\xff\n")
    status, _, reported = run(importing.main, str(tmp_path / "f"))
    assert (status, "cannot be read" in reported) == (2, True)


def test_a_file_without_its_last_page_is_reported(server: Server, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers[IMPORT] = [(200, DONE)]
    monkeypatch.setattr(sys, "stdin", io.StringIO(RECORD))
    status, _, reported = run(importing.main, "-")
    assert (status, "cut off" in reported) == (0, True)


def test_a_part_that_is_refused_is_named_by_its_lines(server: Server, run: Run, tmp_path: Path) -> None:
    (tmp_path / "f").write_text(RECORD * (MAX_LINES + 3))
    refusal = {"code": "invalid_line", "detail": "line 2: its kind is not one"}
    server.answers[IMPORT] = [(200, DONE), (400, refusal)]
    status, printed, reported = run(importing.main, str(tmp_path / "f"))
    assert (status, printed) == (1, "")
    assert f"lines {MAX_LINES + 1} to {MAX_LINES + 3} of" in reported
    assert "What came before them is imported" in reported
    assert reported.endswith("line 2: its kind is not one (invalid_line)\n")


def test_a_file_that_is_not_an_export_is_refused_with_the_option_that_it_needs(
    server: Server, run: Run, tmp_path: Path
) -> None:
    refusal = {"code": "invalid_export", "detail": "line 1 has no kind"}
    server.answers["/admin/tenants/acme/import"] = [(400, refusal)] * 2
    file = tmp_path / "file.json"
    file.write_text('{"results": [{"id": "m", "memory": "Likes tea."}]}')
    hint = "it is not an export of Retain: --from names the product that wrote it (mem0, zep, langgraph)\n"
    assert hint in run(importing.main, str(file))[2]
    file.write_text('{"kind": "record"}')
    assert hint not in run(importing.main, str(file))[2]


def test_of_another_product_s_file_nothing_is_sent_unless_all_of_it_can_be_stored(
    server: Server, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "m").write_text('[{"id": "1", "memory": "Likes tea."}, {"id": "2"}]')
    assert run(importing.main, str(tmp_path / "m"), "--from", "mem0")[0] == 2
    assert server.asked == []
    (tmp_path / "m").write_text('[{"id": "1", "memory": "Likes tea."}]')
    server.answers[IMPORT] = [(200, DONE)]
    assert run(importing.main, str(tmp_path / "m"), "--from", "mem0", "--user", "ann", "--agent", "sdr")[0] == 0
    kinds = [json.loads(line) for line in server.asked[0].content.splitlines()]
    assert [one.get("scope", {}).get("kind") for one in kinds] == ["tenant", "agent", "user", None]


@pytest.mark.parametrize(
    "arguments", [["--user", "ann"], ["--agent", "sdr"], ["--user-at", "0", "--from", "mem0"], ["--from", "other"]]
)
def test_options_that_do_not_fit_are_refused_by_the_parser(server: Server, run: Run, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(importing.main, "-", *arguments)
    assert ended.value.code == 2
