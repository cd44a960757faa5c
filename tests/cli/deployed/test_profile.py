"""Profiles: which deployment is asked, and that a key goes only to the address that it was given with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from retain.cli.deployed.profile import Destination, find_target, profiles_path
from retain.errors import InvalidInput

Write = Callable[..., dict[str, str]]

_TWO = """
default = "local"
[profiles.local]
url = "http://127.0.0.1:8787"
tenant = "acme"
[profiles.live]
url = "https://retain.example"
tenant = "shop"
key = "retainapp_shop_secret"
"""
_LOCAL = Destination("http://127.0.0.1:8787", "acme", None)
_LIVE = Destination("https://retain.example", "shop", "retainapp_shop_secret")


@pytest.fixture
def written(tmp_path: Path) -> Write:
    """Write the file of profiles; return the environment in which it is found."""

    def write(text: str, mode: int = 0o600) -> dict[str, str]:
        path = profiles_path({"XDG_CONFIG_HOME": str(tmp_path)})
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return {"XDG_CONFIG_HOME": str(tmp_path)}

    return write


@pytest.mark.parametrize(
    ("url", "profile", "environment", "target"),
    [
        pytest.param(None, None, {}, _LOCAL, id="the default profile"),
        pytest.param(None, None, {"RETAIN_PROFILE": "live"}, _LIVE, id="the environment's profile"),
        pytest.param(None, "live", {"RETAIN_PROFILE": "local"}, _LIVE, id="the option before the environment"),
        pytest.param(
            None, "local", {"RETAIN_KEY": "other", "RETAIN_URL": "x"}, _LOCAL, id="no key of the environment for a profile"
        ),
        pytest.param(
            "https://else.example", None, {"RETAIN_PROFILE": "live"}, Destination("https://else.example", None, None),
            id="no key of a profile for an address",
        ),
        pytest.param(
            None, None, {"RETAIN_URL": "https://e.example", "RETAIN_KEY": "k", "RETAIN_TENANT": "t"},
            Destination("https://e.example", "t", "k"), id="the environment's address before its profile",
        ),
    ],
)  # fmt: skip
def test_one_deployment_is_named_with_its_own_key(
    written: Write, url: str | None, profile: str | None, environment: dict[str, str], target: Destination
) -> None:
    assert find_target(url, profile, None, {**written(_TWO), **environment}) == target


@pytest.mark.parametrize(
    ("text", "mode", "profile", "code"),
    [
        pytest.param(_TWO, 0o644, None, "profiles_not_private", id="others can read it"),
        pytest.param(_TWO, 0o600, "absent", "no_such_profile", id="an unknown profile"),
        pytest.param("default = ", 0o600, None, "invalid_profiles", id="not TOML"),
        pytest.param("[profiles.a]\nurl = 1", 0o600, "a", "invalid_profiles", id="a number as an address"),
        pytest.param("[profiles.a]\nurl = 'x'\nkye = 'secret'", 0o600, "a", "invalid_profiles", id="a misspelt name"),
        pytest.param("", 0o600, None, "usage", id="none is named"),
    ],
)
def test_profiles_that_cannot_be_used_are_refused_without_their_texts(
    written: Write, text: str, mode: int, profile: str | None, code: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        find_target(None, profile, None, written(text, mode))
    assert refused.value.code == code
    assert "secret" not in refused.value.message


@pytest.mark.parametrize(
    ("script", "key"),
    [
        pytest.param("print('retainapp_a_b')", "retainapp_a_b", id="a key"),
        pytest.param("print()", None, id="nothing"),
        pytest.param("print('half'); raise SystemExit(1)", None, id="a failure"),
    ],
)
def test_a_command_gives_the_key(written: Write, script: str, key: str | None) -> None:
    text = f'[profiles.a]\nurl = "https://retain.example"\nkey_command = ["{sys.executable}", "-c", "{script}"]'
    environment = written(text)
    if key is not None:
        assert find_target(None, "a", "t", environment) == Destination("https://retain.example", "t", key)
        return
    with pytest.raises(InvalidInput) as refused:
        find_target(None, "a", "t", environment)
    assert refused.value.code == "no_key"


def test_a_target_does_not_print_its_key() -> None:
    assert "secret" not in repr(_LIVE)
