"""The command that creates the index on Cloudflare."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from vectorize.provision import Command, Existing, ProvisioningError, apply, look, main, plan, run_wrangler
from vectorize.specification import read_specification

SPECIFIED = read_specification()
TYPES = {one.property: one.type for one in SPECIFIED.metadata_indexes}
COMPLETE = Existing(SPECIFIED.dimensions, SPECIFIED.metric, TYPES)
WRANGLER = ("npx", "wrangler", "vectorize")
CREATE = (*WRANGLER, "create", "retain-memory", "--dimensions=768", "--metric=cosine")
LIST = (*WRANGLER, "list", "--json")
LIST_METADATA = (*WRANGLER, "list-metadata-index", "retain-memory", "--json")


class Account:
    """A fake of wrangler with an account. It answers list commands and records all others."""

    def __init__(self, dimensions: int | None = None, types: Mapping[str, str] | None = None) -> None:
        self.dimensions = dimensions
        self.types = dict(types or {})
        self.ran: list[Command] = []

    def __call__(self, command: Command) -> str:
        self.ran.append(command)
        if command == LIST:
            other = {"name": "another", "config": {"dimensions": 3, "metric": "euclidean"}}
            own = {"name": "retain-memory", "config": {"dimensions": self.dimensions, "metric": "cosine"}}
            return json.dumps([other] if self.dimensions is None else [other, own], indent=2)
        if command == LIST_METADATA:
            return json.dumps([{"propertyName": name, "indexType": kind.title()} for name, kind in self.types.items()])
        verb, _, *options = command[len(WRANGLER) :]
        values = dict(option.removeprefix("--").split("=") for option in options)
        if verb == "create":
            self.dimensions = int(values["dimensions"])
        else:
            assert verb == "create-metadata-index"
            self.types[values["property-name"]] = values["type"]
        return "done"


def create_metadata_index(name: str) -> Command:
    return (*WRANGLER, "create-metadata-index", "retain-memory", f"--property-name={name}", f"--type={TYPES[name]}")


def test_an_empty_account_gets_the_index_before_its_metadata_indexes() -> None:
    assert plan(SPECIFIED, Existing()) == [CREATE, *(create_metadata_index(name) for name in TYPES)]


def test_a_complete_account_needs_nothing() -> None:
    assert plan(SPECIFIED, COMPLETE) == []


def test_only_missing_metadata_indexes_are_created() -> None:
    present = {name: kind for name, kind in TYPES.items() if name not in ("kind", "subject")}
    assert plan(SPECIFIED, replace(COMPLETE, metadata_indexes={**present, "of another": "boolean"})) == [
        create_metadata_index("kind"),
        create_metadata_index("subject"),
    ]


@pytest.mark.parametrize(
    ("existing", "message"),
    [
        (
            replace(COMPLETE, dimensions=256),
            "exists with 256 dimensions and metric cosine, specified are 768 and cosine",
        ),
        (replace(COMPLETE, metric="euclidean"), "metric euclidean"),
        (
            replace(COMPLETE, metadata_indexes={**TYPES, "created_at": "string"}),
            "specified is number: delete it with `npx wrangler vectorize delete-metadata-index retain-memory --property",
        ),
    ],
    ids=["dimensions", "metric", "type of a metadata index"],
)
def test_a_difference_that_cannot_be_changed_is_refused(existing: Existing, message: str) -> None:
    with pytest.raises(ProvisioningError) as caught:
        plan(SPECIFIED, existing)
    assert message in str(caught.value)


def test_the_index_is_found_by_its_name() -> None:
    assert look("retain-memory", Account()) == Existing()
    assert look("retain-memory", Account(768, TYPES)) == COMPLETE


def test_notices_of_wrangler_are_ignored() -> None:
    assert look("retain-memory", lambda _: "update available 4.165.0\n[]\n") == Existing()


@pytest.mark.parametrize("output", ["", "not logged in", "[", "{}"])
def test_output_that_is_not_a_list_is_an_error(output: str) -> None:
    with pytest.raises(ProvisioningError, match="printed no list"):
        look("retain-memory", lambda _: output)


def test_applying_twice_runs_every_command_once() -> None:
    account, printed = Account(), list[str]()
    apply(SPECIFIED, account, printed.append)
    assert account.ran == [LIST, CREATE, *(create_metadata_index(name) for name in TYPES)]
    assert printed == [" ".join(command) for command in account.ran[1:]]
    account.ran.clear()
    printed.clear()
    apply(SPECIFIED, account, printed.append)
    assert account.ran == [LIST, LIST_METADATA]
    assert printed == ["retain-memory is as specified: nothing to do."]


def test_applying_again_continues_after_a_failure_in_the_middle() -> None:
    account = Account()

    def failing(command: Command) -> str:
        if "--property-name=kind" in command:
            raise ProvisioningError("no")
        return account(command)

    with pytest.raises(ProvisioningError):
        apply(SPECIFIED, failing, lambda _: None)
    assert "subject" not in account.types
    apply(SPECIFIED, account, lambda _: None)
    assert account.types == TYPES


def test_adding_to_an_existing_index_advises_to_reindex() -> None:
    printed = list[str]()
    apply(SPECIFIED, Account(768, {"kind": "string"}), printed.append)
    assert "reindex" in printed[-1]


def test_without_apply_nothing_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    account = Account()
    for arguments in ([], ["--dry-run"]):
        assert main(arguments, account) == 0
        assert capsys.readouterr().out.splitlines()[0] == " ".join(CREATE)
    assert account.ran == []


def test_name_and_dimensions_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--name", "mine", "--dimensions", "1024"], Account()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "npx wrangler vectorize create mine --dimensions=1024 --metric=cosine"
    assert all(" mine " in line for line in lines)


def test_apply_runs_what_is_missing() -> None:
    account = Account()
    assert main(["--apply"], account) == 0
    assert (account.dimensions, account.types) == (768, TYPES)


@pytest.mark.parametrize(
    ("arguments", "dimensions", "message"),
    [
        (["--apply"], 256, "exists with 256 dimensions"),
        (["--dimensions", "1537"], None, "dimensions must be 1 to 1536"),
    ],
    ids=["an index with other dimensions", "dimensions over the limit"],
)
def test_what_cannot_be_created_is_reported_with_status_1(
    arguments: list[str], dimensions: int | None, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, Account(dimensions)) == 1
    assert message in capsys.readouterr().err


def test_a_failing_command_is_named_with_what_it_wrote() -> None:
    with pytest.raises(ProvisioningError, match=r"sh -c .* failed:\nout of order"):
        run_wrangler(("sh", "-c", "echo out of order >&2; exit 3"))
    with pytest.raises(ProvisioningError, match="no-such-program is not installed"):
        run_wrangler(("no-such-program",))
    assert run_wrangler(("echo", "[]")) == "[]\n"


def test_a_declared_name_gets_a_metadata_index_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--filter", "customer:string", "--filter", "amount:number"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[-2].endswith("--property-name=meta_customer --type=string")
    assert printed[-1].endswith("--property-name=meta_amount --type=number")


@pytest.mark.parametrize("declared", [["a:text"], ["a"], ["a:string", "b:string", "c:string"]], ids=str)
def test_a_declaration_that_vectorize_does_not_allow_is_refused(
    declared: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([option for one in declared for option in ("--filter", one)]) == 1
    assert capsys.readouterr().out == ""
