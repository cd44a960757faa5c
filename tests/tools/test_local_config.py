from __future__ import annotations

import base64
import copy
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tools import local_config as module
from tools.local_config import local_config, write_local_config
from tools.offline_runtime import COMPATIBILITY_FLAG
from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.stage import read_config


@pytest.fixture
def production() -> dict[str, Any]:
    """The configuration that is deployed."""
    return read_config(PRODUCTION_CONFIG)


def test_production_carries_no_development_setting(production: dict[str, Any]) -> None:
    assert COMPATIBILITY_FLAG not in production["compatibility_flags"]
    assert production["vars"]["RETAIN_ENVIRONMENT"] == "production"
    assert "services" not in production
    assert not [name for name in production["vars"] if name.endswith(("_KEY", "_SECRET", "_TOKEN"))]


def test_production_uploads_what_is_staged_and_has_no_address_before_access_is_configured(
    production: dict[str, Any],
) -> None:
    assert production["workers_dev"] is False
    assert "routes" not in production
    assert production["observability"] == {"enabled": True}
    assert production["compatibility_date"] >= "2026-09-08", "an earlier one has another Python than the packages"
    assert production["python_modules"] == {"exclude": []}, "without it the packages' bytecode stays behind"
    globs = {glob for rule in production["rules"] for glob in rule["globs"]}
    assert globs == {"**/agents.json", "**/*.pyc", "**/precompiled*.marshal", "adapters/exchange.mjs"}
    assert all(rule["fallthrough"] for rule in production["rules"])
    assert set(production["build"]["watch_dir"]) == {"workers", "durable_objects", "agents", "public", "console"}


def test_every_class_of_objects_has_its_migration_and_every_binding_its_name(production: dict[str, Any]) -> None:
    made = [name for migration in production["migrations"] for name in migration["new_sqlite_classes"]]
    assert made == [binding["class_name"] for binding in production["durable_objects"]["bindings"]]
    assert [migration["tag"] for migration in production["migrations"]] == [f"v{at + 1}" for at in range(len(made))]
    assert production["ai"] == {"binding": "AI"}
    [database] = production["d1_databases"]
    assert list((ROOT / database["migrations_dir"]).glob("0001_*.sql"))


def test_only_what_has_to_differ_locally_differs(production: dict[str, Any]) -> None:
    before = copy.deepcopy(production)
    local = local_config(production)
    assert production == before
    assert local["compatibility_flags"] == [*production["compatibility_flags"], COMPATIBILITY_FLAG]
    assert local["services"] == [{"binding": "VECTORIZE", "service": "retain-vectorize"}]
    changed = {"compatibility_flags", "vars", "services", "vectorize", "ai", "ratelimits"}
    assert {name: local[name] for name in local.keys() - changed} == {
        name: production[name] for name in production.keys() - changed
    }
    assert not {"vectorize", "ai", "ratelimits"} & local.keys()
    assert local["vars"].keys() == production["vars"].keys()
    assert local["vars"]["RETAIN_ENVIRONMENT"] == "development"


def test_the_address_of_the_deployment_is_not_that_of_the_local_server(production: dict[str, Any]) -> None:
    routes = [{"pattern": "retain.example.com", "custom_domain": True}]
    assert local_config({**production, "routes": routes, "route": "retain.example.com/*"}) == local_config(production)


@pytest.mark.parametrize("given", ["0", "9", "-1", "two", ""])
def test_a_number_of_databases_that_is_not_possible_is_refused(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("RETAIN_SHARDS", given)
    with pytest.raises(SystemExit, match="a number from 1 to 8"):
        module.shards_wanted()


def test_overrides_win_and_leave_the_rest(production: dict[str, Any]) -> None:
    local = local_config(production, {"CHAT_PROVIDER": "openai", "CHAT_API_KEY": "key"})
    assert local["vars"] == {**local_config(production)["vars"], "CHAT_PROVIDER": "openai", "CHAT_API_KEY": "key"}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout without secrets."""
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return tmp_path


def test_development_secrets_are_made_once(checkout: Path) -> None:
    write_local_config(checkout / "wrangler.local.json")
    keys = dict(line.split("=", 1) for line in (checkout / ".dev.vars").read_text().splitlines())
    assert json.loads(keys.pop("TOKEN_KEY")).keys() == {"kty", "crv", "x", "y", "d"}
    lengths = {name: len(base64.b64decode(value, validate=True)) for name, value in keys.items()}
    assert lengths == {"CREDENTIALS_KEY": 32, "MEMORY_KEY": 32}
    assert keys["CREDENTIALS_KEY"] != keys["MEMORY_KEY"]
    before = (checkout / ".dev.vars").read_text()
    write_local_config(checkout / "wrangler.local.json")
    assert (checkout / ".dev.vars").read_text() == before


@pytest.mark.parametrize("written", ["CREDENTIALS_KEY=mine", "export CREDENTIALS_KEY=mine", "CREDENTIALS_KEY = 'mine'"])
def test_a_missing_development_secret_is_added_and_the_others_stay(checkout: Path, written: str) -> None:
    (checkout / ".dev.vars").write_text(f"{written}\nCHAT_API_KEY=mine too")
    write_local_config(checkout / "wrangler.local.json")
    lines = (checkout / ".dev.vars").read_text().splitlines()
    assert lines[:2] == [written, "CHAT_API_KEY=mine too"]
    assert [line.split("=")[0] for line in lines[2:]] == ["MEMORY_KEY", "TOKEN_KEY"]


def test_an_unchanged_configuration_is_not_written_again(checkout: Path) -> None:
    path = write_local_config(checkout / "wrangler.local.json")
    before = path.stat().st_mtime_ns
    write_local_config(path)
    assert path.stat().st_mtime_ns == before
    write_local_config(path, overrides={"CHAT_MODEL": "another"})
    assert json.loads(path.read_text())["vars"]["CHAT_MODEL"] == "another"


def test_configurations_of_other_names_are_built_into_folders_of_their_own(checkout: Path) -> None:
    built = {}
    for name in ("wrangler.local.json", "wrangler.second.local.json", "wrangler.third.local.json"):
        content = json.loads(write_local_config(checkout / name).read_text())
        folder = content["main"].removesuffix("/entry.py")
        assert folder.startswith(".build-")
        assert content["build"]["command"].endswith(f"--config {name} --target {folder}")
        built[name] = folder
    assert len(set(built.values())) == 3


def test_a_configuration_without_static_files_is_served_without_them(
    checkout: Path, production: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    del production["assets"]
    monkeypatch.setattr(module, "read_config", lambda _: production)
    assert "assets" not in read_config(write_local_config(checkout / "wrangler.local.json"))


@pytest.mark.parametrize(
    "before", [None, "", "MEMORY_KEY=mine\n", "MEMORY_KEY=mine\nCREDENTIALS_KEY=mine\nTOKEN_KEY=mine"]
)
def test_only_the_owner_may_read_the_development_secrets(checkout: Path, before: str | None) -> None:
    file = checkout / ".dev.vars"
    if before is not None:
        file.write_text(before)
        file.chmod(0o644)
    write_local_config(checkout / "wrangler.local.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert {path.name for path in checkout.iterdir()} == {".dev.vars", "wrangler.local.json"}
