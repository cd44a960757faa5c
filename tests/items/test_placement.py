"""The matrix, how a setting changes it, and the bucket lifecycle that follows from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from retain.cli.lifecycle_rules import main
from retain.errors import Misconfigured
from retain.items.placement import DAY_S, MATRIX, ItemPlacement, lifecycle_rules, read_placements
from tools.paths import ROOT


def test_the_matrix_equals_that_of_the_requirements() -> None:
    assert {kind: (it.tier, it.ttl_s, it.retention_s, it.access, it.latency_ms) for kind, it in MATRIX.items()} == {
        "session_state": ("hot", 900, None, "per_request", 50),
        "cart": ("hot", 86_400, None, "many_per_session", 100),
        "search_queries": ("hot", 300, None, "many_per_session", 100),
        "preferences": ("warm", None, 90 * DAY_S, "few_per_session", 500),
        "conversation": ("warm", 30 * DAY_S, None, "few_per_session", 500),
        "order_history": ("cold", None, 220_903_200, "rare", 2000),
        "product_images": ("cold", None, None, "rare", 5000),
        "system_logs": ("cold", None, 90 * DAY_S, "rare", 10_000),
    }


def test_the_documented_matrix_is_that_of_the_code() -> None:
    words = {
        "per_request": "per request",
        "many_per_session": "many times per session",
        "few_per_session": "once or twice per session",
        "rare": "rarely",
    }
    page = (ROOT / "docs" / "tiers.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    documented = {row[0].strip("| `"): (row[1], row[2], row[3]) for row in rows if row[1] in ("hot", "warm", "cold")}
    assert documented == {
        kind: (it.tier, words[it.access or ""], f"{it.latency_ms:,} ms") for kind, it in MATRIX.items()
    }


def test_only_what_the_cold_tier_answers_soon_enough_may_be_there() -> None:
    assert {kind for kind, placement in MATRIX.items() if placement.may_be_cold} == {
        "order_history",
        "product_images",
        "system_logs",
    }
    slower = read_placements('{"preferences": {"latency_ms": 2000}, "notes": {"tier": "warm", "prefix": "notes/"}}')
    assert slower["preferences"].may_be_cold
    assert slower["notes"].may_be_cold, "a type that demands nothing"
    assert not read_placements('{"notes": {"tier": "warm"}}')["notes"].may_be_cold, "its objects would have no prefix"


def test_a_setting_changes_and_adds_data_types() -> None:
    matrix = read_placements('{"cart": {"ttl_s": 3600}, "notes": {"tier": "warm", "retention_s": 86400}}')
    assert matrix["cart"] == ItemPlacement("hot", ttl_s=3600, access="many_per_session", latency_ms=100)
    assert matrix["notes"] == ItemPlacement("warm", retention_s=86_400)
    assert {kind for kind in matrix if matrix[kind] == MATRIX.get(kind)} == set(MATRIX) - {"cart"}
    assert read_placements("") == MATRIX


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"cart": 1}',
        '{"cart": {"tll_s": 60}}',
        '{"notes": {"ttl_s": 60}}',
        '{"notes": {"tier": "tepid"}}',
        '{"notes": {"tier": "hot"}}',
        '{"notes": {"tier": "cold"}}',
        '{"notes": {"tier": "warm", "ttl_s": 59}}',
        '{"notes": {"tier": "warm", "ttl_s": true}}',
        '{"notes": {"tier": "warm", "ttl_s": "60"}}',
        '{"notes": {"tier": "cold", "prefix": "notes"}}',
        '{"notes": {"tier": "cold", "prefix": "tenants/"}}',
        '{"notes": {"tier": "cold", "prefix": "briefs/"}}',
        '{"notes": {"tier": "cold", "prefix": "logs/"}}',
        '{"notes": {"tier": "warm", "access": "daily"}}',
        '{"notes": {"tier": "warm", "latency_ms": 499}}',
        '{"notes": {"tier": "warm", "latency_ms": "500"}}',
        '{"notes": {"tier": "warm", "latency_ms": true}}',
        '{"order_history": {"latency_ms": 1999}}',
    ],
)
def test_an_invalid_setting_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        read_placements(text)
    assert refused.value.code == "invalid_placement"


def test_the_bucket_lifecycle_follows_from_the_matrix() -> None:
    rules = {rule["conditions"].get("prefix", ""): rule for rule in lifecycle_rules(MATRIX)["rules"]}
    assert set(rules) == {"orders-archive/", "uploads/", "logs/", ""}
    assert rules["logs/"]["deleteObjectsTransition"] == {"condition": {"type": "Age", "maxAge": 90 * DAY_S}}
    assert rules["orders-archive/"]["deleteObjectsTransition"]["condition"]["maxAge"] == 2557 * DAY_S
    assert rules["orders-archive/"]["storageClassTransitions"] == [
        {"condition": {"type": "Age", "maxAge": 365 * DAY_S}, "storageClass": "InfrequentAccess"}
    ]
    assert "deleteObjectsTransition" not in rules["uploads/"]
    assert rules["uploads/"]["storageClassTransitions"] == [
        {"condition": {"type": "Age", "maxAge": 30 * DAY_S}, "storageClass": "InfrequentAccess"}
    ]
    assert rules[""]["abortMultipartUploadsTransition"]["condition"]["maxAge"] == 7 * DAY_S
    assert len({rule["id"] for rule in rules.values()}) == len(rules)
    assert all(rule["enabled"] for rule in rules.values())


def test_the_command_prints_the_rules_of_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--placements", '{"notes": {"tier": "cold", "prefix": "notes/", "retention_s": 86400}}']) == 0
    printed = json.loads(capsys.readouterr().out)
    assert "notes/" in [rule["conditions"].get("prefix") for rule in printed["rules"]]
    assert main(["--placements", "{"]) == 2
    assert main([]) == 0


@pytest.mark.parametrize("text", [b"[vars", b"vars = 3", b"# Zo\xeb", b"[vars]\nMEMORY_PLACEMENTS = 3"])
def test_a_configuration_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "stage.py").touch()
    (tmp_path / "wrangler.toml").write_bytes(text)
    monkeypatch.chdir(tmp_path)
    assert main([]) == 2
    assert "wrangler.toml" in capsys.readouterr().err
