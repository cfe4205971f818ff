"""Reads the tables `[[routes]]` and `[aliases]`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.config import checks
from dragoman.gateway.config.document import WRONG, Check, Document, shown
from dragoman.gateway.config.hops import HopReader
from dragoman.gateway.config.matching import NamedRoutes
from dragoman.gateway.config.positions import Path
from dragoman.gateway.config.provider_tables import read_timeouts
from dragoman.gateway.config.settings import RouteSettings, ServerSettings
from dragoman.model.requests import BLANK, Sampling

_MAX_TOKENS = 10**15
_MAX_COST = 1e12
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def _setting(name: str) -> Check:
    """Check for a request setting, with the values that `Request.with_settings` accepts."""

    def check(document: Document, path: Path, value: Any) -> Any:
        try:
            kept = getattr(BLANK.with_settings(**{name: value}).sampling, name)
        except (DragomanError, OverflowError):
            return document.problem(path, f"this is not a valid value for {name}")
        is_negative = isinstance(kept, int | float) and name not in _SIGNED and kept < 0
        return document.problem(path, "this must not be negative") if is_negative else kept

    return check


def _thinking(document: Document, path: Path, value: Any) -> Any:
    from dragoman.agent.setup import thinking_of  # the agent is slow to import

    is_budget = type(value) is int and 0 <= value <= _MAX_TOKENS
    if isinstance(value, bool) or is_budget or (isinstance(value, str) and value in _EFFORTS):
        return thinking_of(value)
    text = f"this must be true, false, a number of tokens, or one of {', '.join(_EFFORTS)}"
    return document.problem(path, text)


def _settings(document: Document, path: Path, value: Any) -> Any:
    return document.fields(path, value, _SETTINGS)


_SIGNED = frozenset({"presence_penalty", "frequency_penalty", "seed"})
_SETTINGS: Mapping[str, Check] = {
    **{name: _setting(name) for name in Sampling.__struct_fields__ if name != "choices"},
    "thinking": _thinking,
}


def _cost(value: Any) -> Any:
    is_number = type(value) in {int, float} and 0 < value <= _MAX_COST
    return Decimal(str(value)) if is_number else WRONG


_BUDGET: Mapping[str, Check] = {
    "tokens": checks.whole(1, _MAX_TOKENS),
    "cost": checks.rule("a positive amount of US dollars", _cost),
    "period": checks.one_of(("total", "day", "month")),
}


def _budget(document: Document, path: Path, value: Any) -> Any:
    found = document.fields(path, value, _BUDGET)
    if isinstance(value, dict) and not {"tokens", "cost"} & set(value):
        return document.problem(path, "a budget needs tokens, a cost, or both")
    return found


def read_routes(
    document: Document, hops: HopReader, server: ServerSettings
) -> tuple[RouteSettings, ...]:
    """The routes, in the order of the file."""
    fields: Mapping[str, Check] = {
        "model": checks.pattern,
        "to": hops.read,
        "name": checks.text,
        "defaults": _settings,
        "fixed": _settings,
        "timeouts": read_timeouts,
        "session": checks.text,
        "store": checks.flag,
        "cache": checks.seconds,
        "budget": _budget,
    }
    tables = document.data.get("routes", [])
    if not isinstance(tables, list):
        document.problem(("routes",), "routes are a list of tables: write [[routes]]")
        return ()
    found: list[RouteSettings] = []
    for index, table in enumerate(tables):
        values = document.fields(("routes", index), table, fields, required=("model", "to"))
        _check_storing(document, ("routes", index), values, server)
        if {"model", "to"} <= set(values):
            found.append(_made(values))
    _check_names(document, tables)
    return tuple(found)


def _made(values: dict[str, Any]) -> RouteSettings:
    budget = values.pop("budget", {})
    return RouteSettings(
        **values,
        max_tokens=budget.get("tokens"),
        max_cost=budget.get("cost"),
        budget_period=budget.get("period", "total"),
    )


def _check_storing(
    document: Document, path: Path, values: Mapping[str, Any], server: ServerSettings
) -> None:
    if server.history is not None:
        return
    for name in ("session", "store"):
        if values.get(name):
            text = "this needs a history store: set history in [server], or DRAGOMAN_HISTORY"
            document.problem((*path, name), text)


def _check_names(document: Document, tables: list[Any]) -> None:
    """Note routes with the same model or name, which can't be reached or told apart."""
    for field in ("model", "name"):
        seen: set[str] = set()
        for index, table in enumerate(tables):
            value = table.get(field) if isinstance(table, dict) else None
            if isinstance(value, str) and value in seen:
                document.problem(("routes", index, field), f"another route has this {field}")
            elif isinstance(value, str):
                seen.add(value)


def _broken(document: Document, exact: set[str]) -> list[RouteSettings]:
    """The routes with problems of their own: that an alias needs them is no other problem."""
    tables = document.data.get("routes")
    models = [
        table.get("model") for table in tables or () if isinstance(tables, list)
        and isinstance(table, dict)
    ]  # fmt: skip
    return [
        RouteSettings(model=model, to=())
        for model in models
        if isinstance(model, str) and model not in exact
    ]


def read_aliases(document: Document, routes: tuple[RouteSettings, ...]) -> dict[str, str]:
    """The aliases, by name."""
    table = document.data.get("aliases", {})
    read = checks.mapping(checks.text, "models")(document, ("aliases",), table)
    found: dict[str, str] = {} if read is WRONG else read
    exact = {route.model for route in routes}
    named = NamedRoutes((*routes, *_broken(document, exact)))
    for alias, meant in found.items():
        path = ("aliases", alias)
        if not alias or "*" in alias or "*" in meant:
            document.problem(path, "an alias must be a name, not a pattern")
        elif meant in found:
            text = f"this is itself an alias{shown(meant)}: use the name that it stands for"
            document.problem(path, text)
        elif alias in exact:
            document.problem(path, "a route has this name already", at_key=True)
        elif document.data.get("routes") and named.find(meant) is None:
            document.problem(path, "no route matches this name")
    return found
