"""Reads the table `[prices]`: custom prices in US dollars per million tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.config import checks
from dragoman.gateway.config.document import WRONG, Check, Document
from dragoman.gateway.config.positions import Path
from dragoman.gateway.config.provider_tables import known_provider
from dragoman.providers.price import Price
from dragoman.providers.registry import provider_names

_MAX_DOLLARS = 1e9
_MAX_TOKENS = 10**12
_MAX_NAME_LENGTH = 256
_SIMILAR = 0.8
_SHAPE = "a price is a table such as { input = 0.1, output = 0.2 }"


def _amount(value: Any) -> Any:
    is_number = type(value) in {int, float} and 0 <= value <= _MAX_DOLLARS
    return Decimal(str(value)) if is_number else WRONG


_DOLLARS = checks.rule("US dollars per million tokens, from 0 up", _amount)
_AMOUNTS: Mapping[str, Check] = dict.fromkeys(
    ("input", "output", "cache_read", "cache_write", "cache_write_hour"), _DOLLARS
)


def _beyond(document: Document, path: Path, value: Any) -> Any:
    return _read(document, path, value, _AMOUNTS)


_FIELDS: Mapping[str, Check] = {
    **_AMOUNTS,
    "above": checks.whole(1, _MAX_TOKENS),
    "beyond": _beyond,
}


def _read(document: Document, path: Path, value: Any, fields: Mapping[str, Check]) -> Any:
    if not isinstance(value, dict):
        return document.problem(path, _SHAPE)
    values = document.fields(path, value, fields, required=("input",))
    if set(values) != set(value) or "input" not in values:
        return WRONG  # the problems are already noted
    try:
        return Price(**values)
    except DragomanError:
        return document.problem(path, "above and beyond belong together: set both or neither")


def read_prices(document: Document, providers: Iterable[str] = ()) -> dict[str, Price]:
    """The custom prices, by name or pattern; `providers` are those of the file."""
    table = document.data.get("prices", {})
    if not isinstance(table, dict):
        document.problem(("prices",), f"this must be a table: {_SHAPE} for each model")
        return {}
    found: dict[str, Price] = {}
    for name, value in table.items():
        path = ("prices", name)
        if not 0 < len(name) <= _MAX_NAME_LENGTH:
            text = f"the name of a model has at most {_MAX_NAME_LENGTH} characters"
            document.problem(path, text, at_key=True)
            continue
        _check_provider(document, path, name, providers)
        price = _read(document, path, value, _FIELDS)
        if price is not WRONG:
            found[name] = price
    return found


def _check_provider(document: Document, path: Path, name: str, providers: Iterable[str]) -> None:
    """Warn of a price for a provider whose name is probably misspelt; models have colons, too."""
    head, colon, _ = name.partition(":")
    if not colon or head in providers or known_provider(head) is not None:
        return
    near = get_close_matches(head, (*providers, *provider_names()), 1, _SIMILAR)
    if near:
        text = (
            f"there is no provider of that name (did you mean {near[0]}?); nothing has this price"
        )
        document.warn(path, text)
