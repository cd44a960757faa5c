"""Prices of models: what a million tokens cost, as the deployment states it in the setting MODEL_PRICES.

The setting is a JSON object: `{"currency": "USD", "models": {"gpt-4.1-mini": {"input": 0.4, "cached_input": 0.1,
"output": 1.6}}}`. Retain knows no prices of its own: they change, and differ by contract.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from typing_extensions import TypedDict

from retain.errors import Misconfigured
from retain.json_text import read_json

MAX_PRICE: Final = 1_000_000
"""Highest price of a million tokens: a larger number is a price in another unit."""
MAX_PRICED_MODELS: Final = 200
"""Most models with a price."""
_CURRENCY = re.compile(r"[A-Z]{3}")
_MILLION = Decimal(1_000_000)


class CostJson(TypedDict):
    """What tokens cost. value: exact to a billionth of the currency, a code of ISO 4217."""

    value: float
    currency: str


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """What a million tokens cost that a model reads, that it writes, and that its server's cache supplies."""

    input: Decimal
    output: Decimal
    cached_input: Decimal


@dataclass(frozen=True, slots=True)
class ModelPrices:
    """The prices of models by their names. currency: a code of ISO 4217, "" without prices."""

    currency: str = ""
    models: Mapping[str, ModelPrice] = field(default_factory=dict)

    def cost(self, model: str, input_tokens: int, output_tokens: int, cached_input_tokens: int = 0) -> CostJson | None:
        """Return what tokens of a model cost; None for a model without a price.

        cached_input_tokens: those of the input tokens that the cache of the model's server supplied.
        """
        price = self.models.get(model)
        if price is None:
            return None
        cached = min(cached_input_tokens, input_tokens)
        read = price.input * (input_tokens - cached) + price.cached_input * cached
        value = (read + price.output * output_tokens) / _MILLION
        return {"value": float(round(value, 9)), "currency": self.currency}


def read_prices(text: str) -> ModelPrices:
    """Return the prices of the setting, none for an empty one. Raises: Misconfigured (code `invalid_setting`)."""
    if not text:
        return ModelPrices()
    try:
        given = read_json(text)
    except ValueError as error:
        raise _refused("is not JSON") from error
    if not isinstance(given, dict) or given.keys() != {"currency", "models"}:
        raise _refused('is a JSON object with "currency" and "models"')
    currency, models = given["currency"], given["models"]
    if not isinstance(currency, str) or _CURRENCY.fullmatch(currency) is None:
        raise _refused("names its currency by three capital letters, as USD")
    if not isinstance(models, dict) or len(models) > MAX_PRICED_MODELS:
        raise _refused(f'has in "models" an object of at most {MAX_PRICED_MODELS} models')
    return ModelPrices(currency, {name: _price(name, price) for name, price in models.items()})


def _price(model: str, given: object) -> ModelPrice:
    if not isinstance(given, dict) or given.keys() - {"cached_input"} != {"input", "output"}:
        raise _refused(
            f'has for {model[:100]} an object with "input" and "output", and "cached_input" if it has a price'
        )
    read, written = (_number(given[name]) for name in ("input", "output"))
    cached = _number(given.get("cached_input", given["input"]))
    if read is None or written is None or cached is None:
        raise _refused(f"has for {model[:100]} prices of a million tokens, from 0 to {MAX_PRICE}")
    return ModelPrice(read, written, cached)


def _number(value: object) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_PRICE:
        return None
    return Decimal(str(value))


def _refused(problem: str) -> Misconfigured:
    return Misconfigured(f"MODEL_PRICES {problem}", code="invalid_setting")
