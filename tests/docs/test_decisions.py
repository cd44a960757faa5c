"""The list of decision records is complete."""

from __future__ import annotations

import re
from datetime import date

from tests.docs.markdown import Page, page
from tools.paths import ROOT

_FOLDER = ROOT / "docs" / "decisions"
_HEAD = re.compile(
    r"\A# \d+\. .+\n\n- Status: (?:proposed|accepted|superseded by \[\d{4}\]\(.+\))\n- Date: (\d{4}-\d\d-\d\d)\n\n"
)
_LINE = re.compile(r"^- \[(\d{4})\]\((\d{4}-[a-z0-9-]+\.md)\) (.+)$", re.MULTILINE)


def _records() -> list[Page]:
    return [Page(path) for path in sorted(_FOLDER.glob("[0-9]*.md"))]


def test_every_record_has_one_line_in_the_list() -> None:
    listed = _LINE.findall(page("docs/decisions/README.md").text)
    assert [name for _, name, _ in listed] == [record.path.name for record in _records()]
    assert all(name.startswith(f"{number}-") for number, name, _ in listed)


def test_records_are_numbered_without_gaps_and_say_their_number() -> None:
    for expected, record in enumerate(_records(), start=1):
        assert record.path.name.startswith(f"{expected:04}-")
        assert record.text.startswith(f"# {expected}. "), record.name


def test_records_begin_with_their_status_and_date_and_end_with_the_consequences() -> None:
    for record in _records():
        head = _HEAD.match(record.text)
        assert head is not None, f"{record.name}: a title, then `- Status: …` and `- Date: YYYY-MM-DD`"
        date.fromisoformat(head[1])
        assert re.findall(r"^## (.+)$", record.text, re.MULTILINE)[-1:] == ["Consequences"], record.name
