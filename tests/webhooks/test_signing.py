"""Signatures of messages."""

from __future__ import annotations

import binascii

import pytest

from retain.webhooks.signing import PREFIX, SECRET_BYTES, new_secret, signed_headers

SECRETS = [new_secret(), new_secret()]


def test_a_message_is_signed_as_standard_webhooks_shows() -> None:
    """Source: https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/python/tests/test_webhooks.py"""
    secret, name = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    assert signed_headers([secret], name, 1_614_265_330_999, '{"test": 2432232314}') == {
        "webhook-id": name,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_secret_signs() -> None:
    old, new = (signed_headers([one], "msg_1", 0, "{}")["webhook-signature"] for one in (SECRETS))
    assert signed_headers(SECRETS, "msg_1", 0, "{}")["webhook-signature"] == f"{old} {new}"


def test_each_secret_is_new_and_long_enough() -> None:
    secrets = {new_secret() for _ in range(10)}
    assert len(secrets) == 10
    assert {len(binascii.a2b_base64(one.removeprefix(PREFIX), strict_mode=True)) for one in secrets} == {SECRET_BYTES}


def test_a_text_that_is_not_a_secret_signs_nothing() -> None:
    with pytest.raises(ValueError, match="base64"):
        signed_headers(["whsec_not base64!"], "msg_1", 0, "{}")
