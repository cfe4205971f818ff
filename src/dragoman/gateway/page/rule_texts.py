"""The rules of each dialect, with their descriptions, as `check` applies them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from dragoman.errors import ConfigError, InvalidRequest
from dragoman.gateway.page.calls import PageCall
from dragoman.providers.documents.naming import Named
from dragoman.wire.dialect import is_own_dialect
from dragoman.wire.violations import Rule


async def rules(call: PageCall) -> Any:
    """Returns the rules of a target."""
    try:
        spoken, _ = Named(call.query.get("target", "")).fitting(None)
    except ConfigError as error:
        raise InvalidRequest(str(error), status=400) from None
    return {"rules": [_shown(rule) for rule in rules_of(spoken.name)]}


def _shown(rule: Rule[Any]) -> dict[str, Any]:
    return {
        "id": rule.number,
        "text": text_of(rule),
        "evidence": rule.evidence,
        "severity": rule.severity,
        "refused_by": list(rule.refused_by),
    }


@lru_cache(maxsize=32)
def rules_of(dialect: str) -> tuple[Rule[Any], ...]:
    """Returns the rules of a dialect; empty for dialects of other packages."""
    if not is_own_dialect(dialect):
        return ()
    folder = dialect.replace("-", "_")
    return tuple(import_module(f"dragoman.wire.{folder}.rules").RULES)


def text_of(rule: Rule[Any]) -> str:
    """Returns the description of a rule."""
    return " ".join((rule.find.__doc__ or "").split())


@lru_cache(maxsize=32)
def texts_of(dialect: str) -> dict[str, str]:
    """Maps each rule number to the descriptions of all its checks."""
    found: dict[str, list[str]] = {}
    for rule in rules_of(dialect):
        found.setdefault(rule.number, []).append(text_of(rule))
    return {number: " ".join(texts) for number, texts in found.items()}
