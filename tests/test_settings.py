"""The deployment's settings: what is read, what is production, and that secrets are not shown."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping

import pytest

from retain.errors import Misconfigured
from retain.settings import NAMES, NamespaceSettings, read_settings
from tools.paths import PRODUCTION_CONFIG

VALUES = {name: f"value-of-{name}" for name in NAMES} | {
    "EMBEDDING_DIMENSIONS": "256",
    "RUNS_RETENTION_DAYS": "30",
    "GATEWAY_KEPT_SECONDS": "7",
    "BACKUPS_DAILY": "true",
    "AGENT_MEMORY_ANSWERS": "chat",
    "APPLICATION_KEYS": "true",
    "AUTHORIZATION_SERVERS": "https://one.example, https://two.example/tenant",
    "OTLP_ENDPOINT": "https://collector.example:4318/",
    "OTLP_HEADERS": "authorization=Bearer%20value-of-OTLP_HEADERS, x-team = ops",
    "OTLP_CONTENTS": "true",
    "BACKUPS_KEPT_DAYS": "28",
    "ALLOW_MODEL_REQUESTS": "false",
    "MEMORY_NAMESPACE_WRITE_CANONICAL": "true",
    "MEMORY_NAMESPACE_COMPAT_READ": "false",
}


class Watched(Mapping[str, str]):
    """Variables that remember which of them were asked for."""

    def __init__(self) -> None:
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.asked.add(name)
        return VALUES[name]

    def __iter__(self) -> Iterator[str]:
        return iter(VALUES)

    def __len__(self) -> int:
        return len(VALUES)


def test_every_value_lands_where_it_belongs() -> None:
    settings = read_settings(VALUES)
    assert settings.environment == "value-of-RETAIN_ENVIRONMENT"
    assert settings.access_team_domain == "value-of-ACCESS_TEAM_DOMAIN"
    assert settings.access_audience == "value-of-ACCESS_AUDIENCE"
    assert settings.credentials_key == "value-of-CREDENTIALS_KEY"
    assert settings.previous_credentials_key == "value-of-PREVIOUS_CREDENTIALS_KEY"
    assert settings.embedding_dimensions == 256
    assert settings.runs_retention_days == 30
    assert settings.agent_models == "value-of-AGENT_MODELS"
    assert settings.gateway_kept_s == 7
    assert settings.model_prices == "value-of-MODEL_PRICES"
    assert (settings.backups_daily, settings.backups_kept_days) == (True, 28)
    assert settings.application_keys is True
    assert settings.authorization_servers == ("https://one.example", "https://two.example/tenant")
    assert (settings.agent_memory_account, settings.agent_memory_answers) == ("value-of-AGENT_MEMORY_ACCOUNT", "chat")
    assert {model.allow_requests for model in (settings.chat, settings.embedding)} == {False}
    assert settings.namespaces == NamespaceSettings(True, False, "value-of-MEMORY_NAMESPACE_LEGACY_PATTERNS")
    for prefix, model in (("CHAT", settings.chat), ("EMBEDDING", settings.embedding)):
        assert (model.provider, model.name, model.base_url, model.api_key) == (
            f"value-of-{prefix}_PROVIDER",
            f"value-of-{prefix}_MODEL",
            f"value-of-{prefix}_BASE_URL",
            f"value-of-{prefix}_API_KEY",
        )


@pytest.mark.parametrize("days", ["0", "29", "x", ""])
def test_a_backup_is_kept_for_less_time_than_the_ids_of_erased_users(days: str) -> None:
    with pytest.raises(Misconfigured):
        read_settings({**VALUES, "BACKUPS_KEPT_DAYS": days})


def test_a_collector_has_an_address_and_the_headers_that_it_wants() -> None:
    collector = read_settings(VALUES).collector
    assert collector is not None
    assert (collector.endpoint, collector.contents) == ("https://collector.example:4318", True)
    assert collector.headers == {"authorization": "Bearer value-of-OTLP_HEADERS", "x-team": "ops"}
    assert read_settings({**VALUES, "OTLP_ENDPOINT": ""}).collector is None
    for wrong in (
        {"OTLP_ENDPOINT": "http://collector.example"},
        {"OTLP_HEADERS": "no value"},
        {"OTLP_CONTENTS": "yes"},
    ):
        with pytest.raises(Misconfigured):
            read_settings({**VALUES, **wrong})


def test_the_names_are_exactly_those_that_are_read() -> None:
    variables = Watched()
    read_settings(variables)
    assert variables.asked == set(NAMES)
    assert len(NAMES) == len(set(NAMES))


def test_invariant_9_no_secret_is_shown() -> None:
    settings = read_settings(VALUES)
    shown = f"{settings!r} {settings}"
    for name in (name for name in NAMES if name.endswith("_KEY")):
        assert f"value-of-{name}" not in shown
    assert "value-of-CHAT_MODEL" in shown


@pytest.mark.parametrize("environment", ["production", "", "Development", "development ", "dev", "test"])
def test_anything_but_the_exact_word_is_production(environment: str) -> None:
    assert read_settings({**VALUES, "RETAIN_ENVIRONMENT": environment}).development is False


def test_the_exact_word_is_development_and_nothing_is_production() -> None:
    assert read_settings({**VALUES, "RETAIN_ENVIRONMENT": "development"}).development is True
    unset = {name: value for name, value in VALUES.items() if name != "RETAIN_ENVIRONMENT"}
    assert (read_settings(unset).environment, read_settings(unset).development) == ("production", False)


@pytest.mark.parametrize("name", ["EMBEDDING_DIMENSIONS", "RUNS_RETENTION_DAYS"])
@pytest.mark.parametrize("value", ["", "many", "-1", "0", "256.0", " 256", "1e3", "٣"])
def test_a_setting_that_is_not_a_number_above_0_is_refused(name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({**VALUES, name: value})
    assert raised.value.code == "invalid_setting"
    assert name in raised.value.message


@pytest.mark.parametrize("value", ["", "61", "-1", "5.0", " 5", "a minute"])
def test_what_the_gateway_keeps_is_bounded_to_a_minute(value: str) -> None:
    with pytest.raises(Misconfigured, match="GATEWAY_KEPT_SECONDS"):
        read_settings({**VALUES, "GATEWAY_KEPT_SECONDS": value})
    assert [read_settings({**VALUES, "GATEWAY_KEPT_SECONDS": one}).gateway_kept_s for one in ("0", "60")] == [0, 60]


@pytest.mark.parametrize(
    "name", ["ALLOW_MODEL_REQUESTS", "MEMORY_NAMESPACE_WRITE_CANONICAL", "MEMORY_NAMESPACE_COMPAT_READ"]
)
@pytest.mark.parametrize("value", ["", "True", "1", "yes", " true"])
def test_a_flag_is_true_or_false_and_nothing_else(name: str, value: str) -> None:
    with pytest.raises(Misconfigured) as raised:
        read_settings({**VALUES, name: value})
    assert raised.value.code == "invalid_setting"
    assert name in raised.value.message


def test_the_deployment_as_shipped_leaves_the_flags_of_namespaces_false() -> None:
    shipped = tomllib.loads(PRODUCTION_CONFIG.read_text())["vars"]
    assert shipped["MEMORY_NAMESPACE_WRITE_CANONICAL"] == "false"
    assert shipped["MEMORY_NAMESPACE_COMPAT_READ"] == "false"


def test_what_may_be_absent_is_shipped_as_it_is_without_it() -> None:
    """Who keeps a configuration of their own leaves out what they do not change."""
    shipped = {**tomllib.loads(PRODUCTION_CONFIG.read_text())["vars"], "OTLP_ENDPOINT": "https://collector.example"}
    settings, required = read_settings(shipped), set()
    for name in shipped.keys() - {"OTLP_ENDPOINT"}:
        try:
            without = read_settings({key: value for key, value in shipped.items() if key != name})
        except Misconfigured:
            required.add(name)
        else:
            assert without == settings or name.startswith(("CHAT_", "EMBEDDING_")), name
    assert required <= {"CHAT_PROVIDER", "CHAT_MODEL", "EMBEDDING_PROVIDER", "EMBEDDING_MODEL", "EMBEDDING_DIMENSIONS"}
    assert settings.chat.provider != "scripted", "a script answers nobody"
    assert settings.chat.allow_requests


def test_the_flags_of_namespaces_are_false_by_default() -> None:
    unset = {name: value for name, value in VALUES.items() if not name.startswith("MEMORY_NAMESPACE")}
    assert read_settings(unset).namespaces == NamespaceSettings(False, False, "")
