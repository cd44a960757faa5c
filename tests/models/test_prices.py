"""Prices of models: what the setting may say, and what tokens cost by it."""

from __future__ import annotations

import json

import pytest

from retain.errors import Misconfigured
from retain.models.prices import MAX_PRICE, MAX_PRICED_MODELS, ModelPrices, read_prices


def priced(**models: object) -> str:
    return json.dumps({"currency": "USD", "models": models})


def test_tokens_cost_what_the_setting_says() -> None:
    prices = read_prices(priced(small={"input": 0.4, "output": 1.6}))
    assert prices.cost("small", 1_000_000, 500_000) == {"value": 1.2, "currency": "USD"}
    assert prices.cost("small", 1, 0) == {"value": 4e-7, "currency": "USD"}, "a single token is not rounded away"
    assert prices.cost("small", 0, 0) == {"value": 0.0, "currency": "USD"}


def test_a_sum_of_prices_has_no_error_of_binary_fractions() -> None:
    assert read_prices(priced(small={"input": 0.1, "output": 0.2})).cost("small", 1_000_000, 1_000_000) == {
        "value": 0.3,
        "currency": "USD",
    }


def test_a_model_without_a_price_costs_nobody_knows_what() -> None:
    assert read_prices("") == ModelPrices()
    assert read_prices("").cost("small", 10, 10) is None
    assert read_prices(priced(small={"input": 1, "output": 1})).cost("large", 10, 10) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="not JSON"),
        pytest.param("[]", id="not an object"),
        pytest.param('{"models": {}}', id="without a currency"),
        pytest.param('{"currency": "USD"}', id="without models"),
        pytest.param('{"currency": "USD", "models": {}, "taxes": 1}', id="with more"),
        pytest.param('{"currency": "dollars", "models": {}}', id="not a currency"),
        pytest.param('{"currency": 840, "models": {}}', id="a currency's number"),
        pytest.param('{"currency": "USD", "models": []}', id="a list of models"),
        pytest.param(priced(small=1), id="one number"),
        pytest.param(priced(small={"input": 1}), id="half a price"),
        pytest.param(priced(small={"input": 1, "output": 1, "cached": 1}), id="a third price"),
        pytest.param(priced(small={"input": 1, "cached_input": 1}), id="no price of output"),
        pytest.param(priced(small={"input": 1, "output": 1, "cached_input": "1"}), id="a text for cached input"),
        pytest.param(priced(small={"input": "1", "output": 1}), id="a text"),
        pytest.param(priced(small={"input": True, "output": 1}), id="a flag"),
        pytest.param(priced(small={"input": -0.1, "output": 1}), id="below zero"),
        pytest.param(priced(small={"input": 1, "output": float("nan")}), id="not a number"),
    ],
)
def test_another_setting_is_refused(text: str) -> None:
    with pytest.raises(Misconfigured, match="MODEL_PRICES") as raised:
        read_prices(text)
    assert raised.value.code == "invalid_setting"


def test_prices_are_bounded() -> None:
    read_prices(priced(small={"input": MAX_PRICE, "output": MAX_PRICE}))
    with pytest.raises(Misconfigured):
        read_prices(priced(small={"input": MAX_PRICE + 1, "output": 0}))
    models = {f"m{number}": {"input": 1, "output": 1} for number in range(MAX_PRICED_MODELS)}
    assert len(read_prices(priced(**models)).models) == MAX_PRICED_MODELS
    with pytest.raises(Misconfigured):
        read_prices(priced(**models, more={"input": 1, "output": 1}))


def test_cached_input_has_a_price_of_its_own_and_without_one_that_of_input() -> None:
    prices = read_prices(priced(small={"input": 1, "cached_input": 0.25, "output": 2}, large={"input": 1, "output": 2}))
    values = [prices.cost(model, 1_000_000, 500_000, 400_000) for model in ("small", "large")]
    assert [value and value["value"] for value in values] == [1.7, 2.0]
    assert prices.cost("small", 10, 0, 999) == prices.cost("small", 10, 0, 10), "no more is cached than was read"
