"""The deployment's settings, read once from its variables and secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict
from urllib.parse import unquote, urlsplit

from retain.errors import Misconfigured
from retain.telemetry.collector import Collector


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How to reach a model.

    base_url: "" for the provider's own. api_key: a secret, never shown. allow_requests: if False, only loopback is
    allowed. key_name: of the secret that has the key, for who has to set it.
    """

    provider: str
    name: str
    base_url: str
    api_key: str = field(repr=False)
    allow_requests: bool = True
    key_name: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceSettings:
    """How memory's keys are migrated. legacy_patterns: JSON, read by `retain.items.rekeying.patterns`."""

    write_canonical: bool = False
    compat_read: bool = False
    legacy_patterns: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a deployment configures.

    chat: the model of agents that name none. accounts: how to reach the providers that they may name, by provider.
    credentials_key: base64 of the 32 bytes that seal upstream credentials. previous_credentials_key: the one before it,
    until everything is sealed with the new one.
    token_key: the JWK that signs tokens of applications' users. memory_key, previous_memory_key: the same for the PII of
    tiered memory. All are secrets, never shown. memory_placements, memory_pii_fields: as `retain.items` reads them.
    agent_models: the models that tenants' own agents may name besides those of the repository, as `provider/name`, separated
    by spaces; `*` for all. model_prices: as `retain.models.prices` reads them. evaluation_judge: as
    `retain.evaluation.scoring.judge` does.
    runs_retention_days: how long the row of a run is kept.
    owners: the subjects that own every tenant without a grant, separated by commas, as `retain.roles.subjects` reads them.
    authorization_servers: the issuers of tokens that clients of MCP are referred to, none by default.
    application_keys: whether keys of applications are accepted where Access is. resolver_url: as `retain.gateway.settings`.
    gateway_kept_s: for how many seconds the gateway uses what KV answered, at most 60.
    agent_memory_account: the account id that is answered under Cloudflare Agent Memory's paths, "" for none in production
    and any in development. agent_memory_answers: `chat` if the chat model writes answers and summaries there, else `off`.
    backups_daily: whether the daily work backs tenants up. backups_kept_days: how long a backup is kept, at most 28.
    collector: where telemetry goes, None for nowhere. vector_filters: the properties with a metadata index beyond those of
    every deployment, as `retain.limits.vector_filter.declared` reads them.
    """

    environment: str
    access_team_domain: str
    access_audience: str
    chat: ModelSettings
    accounts: Mapping[str, ModelSettings]
    embedding: ModelSettings
    embedding_dimensions: int
    rerank_model: str
    extractor: str
    namespaces: NamespaceSettings
    credentials_key: str = field(repr=False)
    previous_credentials_key: str = field(repr=False)
    runs_retention_days: int = 400
    evaluation_judge: str = "off"
    model_prices: str = ""
    agent_models: str = ""
    owners: str = ""
    authorization_servers: tuple[str, ...] = ()
    application_keys: bool = False
    resolver_url: str = ""
    gateway_kept_s: int = 5
    vector_filters: str = ""
    agent_memory_account: str = ""
    agent_memory_answers: str = "off"
    collector: Collector | None = None
    memory_placements: str = ""
    memory_pii_fields: str = ""
    backups_daily: bool = False
    backups_kept_days: int = 14
    token_key: str = field(default="", repr=False)
    memory_key: str = field(default="", repr=False)
    previous_memory_key: str = field(default="", repr=False)

    @property
    def development(self) -> bool:
        """Whether this is a development deployment; anything but the exact word is production."""
        return self.environment == "development"


class _Reach(TypedDict):
    base_url: str
    api_key: str
    allow_requests: bool
    key_name: str


def read_settings(variables: Mapping[str, str]) -> Settings:
    """Return the settings. Raises: Misconfigured (code `invalid_setting`) for an invalid number or flag."""
    return Settings(
        environment=variables.get("RETAIN_ENVIRONMENT", "production"),
        access_team_domain=variables.get("ACCESS_TEAM_DOMAIN", ""),
        access_audience=variables.get("ACCESS_AUDIENCE", ""),
        owners=variables.get("OWNERS", ""),
        authorization_servers=_authorization_servers(variables),
        application_keys=_flag("APPLICATION_KEYS", variables),
        resolver_url=variables.get("RESOLVER_URL", ""),
        gateway_kept_s=_gateway_kept_s(variables),
        chat=_model("CHAT", variables),
        accounts={provider: _account(provider, variables) for provider in ACCOUNTS},
        embedding=_model("EMBEDDING", variables),
        embedding_dimensions=_number("EMBEDDING_DIMENSIONS", variables),
        extractor=variables.get("EXTRACTOR", "rules"),
        namespaces=NamespaceSettings(
            write_canonical=_flag("MEMORY_NAMESPACE_WRITE_CANONICAL", variables),
            compat_read=_flag("MEMORY_NAMESPACE_COMPAT_READ", variables),
            legacy_patterns=variables.get("MEMORY_NAMESPACE_LEGACY_PATTERNS", ""),
        ),
        rerank_model=variables.get("RERANK_MODEL", ""),
        vector_filters=variables.get("VECTOR_FILTERS", ""),
        credentials_key=variables.get("CREDENTIALS_KEY", ""),
        previous_credentials_key=variables.get("PREVIOUS_CREDENTIALS_KEY", ""),
        runs_retention_days=_number("RUNS_RETENTION_DAYS", variables, default="400"),
        evaluation_judge=variables.get("EVAL_JUDGE", "off"),
        agent_models=variables.get("AGENT_MODELS", ""),
        model_prices=variables.get("MODEL_PRICES", ""),
        memory_placements=variables.get("MEMORY_PLACEMENTS", ""),
        memory_pii_fields=variables.get("MEMORY_PII_FIELDS", ""),
        agent_memory_account=variables.get("AGENT_MEMORY_ACCOUNT", ""),
        agent_memory_answers=_choice("AGENT_MEMORY_ANSWERS", variables, ("off", "chat")),
        collector=_collector(variables),
        backups_daily=_flag("BACKUPS_DAILY", variables),
        backups_kept_days=_backups_kept_days(variables),
        token_key=variables.get("TOKEN_KEY", ""),
        memory_key=variables.get("MEMORY_KEY", ""),
        previous_memory_key=variables.get("PREVIOUS_MEMORY_KEY", ""),
    )


def _flag(name: str, variables: Mapping[str, str], default: str = "false") -> bool:
    value = variables.get(name, default)
    if value not in ("true", "false"):
        raise Misconfigured(f"{name} must be true or false", code="invalid_setting")
    return value == "true"


def _choice(name: str, variables: Mapping[str, str], choices: tuple[str, ...]) -> str:
    """Return one of the choices, the first where nothing is set."""
    value = variables.get(name, choices[0])
    if value not in choices:
        raise Misconfigured(f"{name} must be one of {', '.join(choices)}", code="invalid_setting")
    return value


def _number(name: str, variables: Mapping[str, str], default: str = "") -> int:
    value = variables.get(name, default)
    if not (value.isascii() and value.isdecimal() and int(value) > 0):
        raise Misconfigured(f"{name} must be a number above 0", code="invalid_setting")
    return int(value)


def _collector(variables: Mapping[str, str]) -> Collector | None:
    """Return where telemetry goes, None for nowhere. The form of the headers is that of OTEL_EXPORTER_OTLP_HEADERS."""
    endpoint = variables.get("OTLP_ENDPOINT", "").rstrip("/")
    contents = _flag("OTLP_CONTENTS", variables)
    if not endpoint:
        return None
    address = urlsplit(endpoint)
    if address.scheme != "https" and address.hostname not in ("localhost", "127.0.0.1"):
        raise Misconfigured("OTLP_ENDPOINT must begin with https://", code="invalid_setting")
    pairs = [one.partition("=") for one in variables.get("OTLP_HEADERS", "").split(",") if one.strip()]
    if not all(equals and name.strip() for name, equals, _ in pairs):
        raise Misconfigured("OTLP_HEADERS must be name=value pairs, separated by commas", code="invalid_setting")
    return Collector(endpoint, {name.strip(): unquote(value.strip()) for name, _, value in pairs}, contents)


def _authorization_servers(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the issuers, as RFC 8414 has them: https addresses without query and fragment."""
    issuers = tuple(one.strip() for one in variables.get("AUTHORIZATION_SERVERS", "").split(",") if one.strip())
    for issuer in issuers:
        address = urlsplit(issuer)
        if address.scheme != "https" or not address.hostname or address.query or address.fragment or "@" in issuer:
            raise Misconfigured(
                "AUTHORIZATION_SERVERS must be https addresses without query and fragment, separated by commas",
                code="invalid_setting",
            )
    return issuers


def _backups_kept_days(variables: Mapping[str, str]) -> int:
    days = _number("BACKUPS_KEPT_DAYS", variables, default="14")
    if days > MAX_BACKUPS_KEPT_DAYS:
        raise Misconfigured(f"BACKUPS_KEPT_DAYS must be at most {MAX_BACKUPS_KEPT_DAYS}", code="invalid_setting")
    return days


def _gateway_kept_s(variables: Mapping[str, str]) -> int:
    value = variables.get("GATEWAY_KEPT_SECONDS", "5")
    if not (value.isascii() and value.isdecimal() and int(value) <= MAX_GATEWAY_KEPT_S):
        message = f"GATEWAY_KEPT_SECONDS must be a number from 0 to {MAX_GATEWAY_KEPT_S}"
        raise Misconfigured(message, code="invalid_setting")
    return int(value)


def _model(prefix: str, variables: Mapping[str, str]) -> ModelSettings:
    return ModelSettings(
        variables.get(f"{prefix}_PROVIDER", ""), variables.get(f"{prefix}_MODEL", ""), **_reach(prefix, variables)
    )


def _account(provider: str, variables: Mapping[str, str]) -> ModelSettings:
    return ModelSettings(provider, "", **_reach(provider.upper(), variables))


def _reach(prefix: str, variables: Mapping[str, str]) -> _Reach:
    return {
        "base_url": variables.get(f"{prefix}_BASE_URL", ""),
        "api_key": variables.get(f"{prefix}_API_KEY", ""),
        "allow_requests": _flag("ALLOW_MODEL_REQUESTS", variables, default="true"),
        "key_name": f"{prefix}_API_KEY",
    }


MAX_GATEWAY_KEPT_S = 60
"""Longest time for which the gateway uses what KV answered: KV itself may be as late."""
MAX_BACKUPS_KEPT_DAYS = 28
"""Longest time that backups are kept: the ids of erased users are kept for 30 days, so a restore knows of each of them."""
ACCOUNTS = ("openai", "anthropic")
"""Providers of chat models that an agent may name besides the deployment's own, and that need an address and a key."""


NAMES = (
    "RETAIN_ENVIRONMENT",
    "ACCESS_TEAM_DOMAIN",
    "ACCESS_AUDIENCE",
    "APPLICATION_KEYS",
    "OWNERS",
    "AUTHORIZATION_SERVERS",
    "RESOLVER_URL",
    "GATEWAY_KEPT_SECONDS",
    "CHAT_PROVIDER",
    "CHAT_MODEL",
    "CHAT_BASE_URL",
    "CHAT_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_API_KEY",
    "ALLOW_MODEL_REQUESTS",
    "EMBEDDING_PROVIDER",
    "EMBEDDING_MODEL",
    "EMBEDDING_DIMENSIONS",
    "EMBEDDING_BASE_URL",
    "EMBEDDING_API_KEY",
    "EXTRACTOR",
    "EVAL_JUDGE",
    "AGENT_MODELS",
    "MODEL_PRICES",
    "RUNS_RETENTION_DAYS",
    "VECTOR_FILTERS",
    "OTLP_ENDPOINT",
    "OTLP_HEADERS",
    "OTLP_CONTENTS",
    "AGENT_MEMORY_ACCOUNT",
    "AGENT_MEMORY_ANSWERS",
    "BACKUPS_DAILY",
    "BACKUPS_KEPT_DAYS",
    "RERANK_MODEL",
    "MEMORY_NAMESPACE_WRITE_CANONICAL",
    "MEMORY_NAMESPACE_COMPAT_READ",
    "MEMORY_NAMESPACE_LEGACY_PATTERNS",
    "CREDENTIALS_KEY",
    "PREVIOUS_CREDENTIALS_KEY",
    "MEMORY_PLACEMENTS",
    "MEMORY_PII_FIELDS",
    "MEMORY_KEY",
    "TOKEN_KEY",
    "PREVIOUS_MEMORY_KEY",
)
"""Every variable and secret that is read."""
