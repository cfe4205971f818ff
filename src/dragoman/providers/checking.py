"""Check a request against the rules of a target in one call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.collection import Messages
from dragoman.model.jsontext import loads
from dragoman.model.requests import Request
from dragoman.providers.provider import Provider
from dragoman.providers.translation import target_of
from dragoman.wire.dialect import Dialect, dialect, is_dialect
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation


def check(
    body: Mapping[str, Any] | str | bytes | Request | Messages,
    *,
    target: str | Target | Provider,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> list[Violation]:
    """Check what a target would refuse in a request, before it is sent.

    The request is a body in the target's dialect, or a `Request` or `Messages`, which are checked
    as they would be sent. The target is the name of a dialect or provider, `provider:model`, or a
    `Target` or `Provider`.

    >>> check({"model": "m", "max_tokens": 9, "messages": []}, target="anthropic")[0].message
    'at least one message is required'
    """
    if isinstance(body, (Request, Messages)):
        request = body if isinstance(body, Request) else Request(messages=tuple(body))
        spoken, found = reader_of(target, request.model)
        if found is not None and found.model is not None:
            request = request.replace(model=found.model)
        return spoken.check(spoken.encode_request(request, found).body, target=found)
    wire = loads(body) if isinstance(body, (str, bytes, bytearray)) else body
    model = wire.get("model") if isinstance(wire, Mapping) else None
    spoken, found = reader_of(target, model if isinstance(model, str) else None)
    return spoken.check(wire, path, headers, found)


def reader_of(target: str | Target | Provider, model: str | None) -> tuple[Dialect, Target | None]:
    """The dialect for a request to a model, and its target; None for the vendor's default."""
    if isinstance(target, str) and is_dialect(target):
        return dialect(target), None
    found = target if isinstance(target, Target) else target_of(target, model)
    return dialect(found.dialect), found
