"""From one wire format to another in one call, fitted to whoever is going to read it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dragoman.errors import ConfigError
from dragoman.providers.provider import Provider
from dragoman.providers.registry import provider, provider_names, stamp
from dragoman.wire.dialect import Body, dialect, dialects, is_dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.lane.requests import translated
from dragoman.wire.lane.heads import Asked, Translated
from dragoman.wire.lane.plain import Lane
from dragoman.wire.target import Target


def translate(
    body: Body,
    *,
    source: str,
    target: str | Target | Provider,
    path: str | None = None,
    headers: Mapping[str, str] | None = None,
    strict: bool = False,
    repair: bool = True,
) -> Encoded:
    """A request in another dialect, fitted to a target; `strict` raises where anything is lost.

    `repair=False` sends what was given, whatever the target would refuse.

    The target is a dialect, a provider, `provider:model`, or a value of either kind. A model that
    is named takes the place of the request's.

    >>> translate({"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    ...           source="openai-chat", target="gemini").body
    {'contents': [{'role': 'user', 'parts': [{'text': 'Hi'}]}]}
    """

    def general(body: Body) -> Translated:
        request = dialect(source).decode_request(body, path=path, headers=headers)
        if isinstance(target, str) and is_dialect(target):
            writing = dialect(target)
            encoded = writing.encode_request(request, repair=repair)
            return Translated(request, encoded, writing.target, is_named=False)
        found = target if isinstance(target, Target) else target_of(target, request.model)
        if found.model is not None and found.model != request.model:
            request = request.replace(model=found.model)
        encoded = dialect(found.dialect).encode_request(request, found, repair=repair)
        return Translated(request, encoded, found, is_named=True)

    lane = lane_of(source) if isinstance(target, str) and headers is None else None
    encoded = None
    if lane is not None:
        known = None if is_dialect(target) else stamp()  # type: ignore[arg-type]  # a text, or there is no lane
        key = (source, target, path, repair, known)
        encoded = translated(body, Asked(lane, key, repair, general, lane_of))
    if encoded is None:
        encoded = general(body).encoded
    return encoded.or_raise() if strict else encoded


@cache
def lane_of(name: str) -> Lane | None:
    """How a dialect reads and writes plain conversations; None: it does not."""
    return getattr(dialect(name), "lane", None)


def target_of(name: str | Provider, model: str | None = None) -> Target:
    """The target that a provider or `provider:model` means; else for the model given.

    >>> target_of("groq:llama-3.3-70b-versatile").dialect
    'openai-chat'
    """
    if isinstance(name, Provider):
        return name.target(model)
    spoken, colon, named = name.partition(":")
    if not spoken or (colon and not named):
        msg = "a target is a dialect, a provider or provider:model"
        raise ConfigError(msg)
    try:
        found = provider(spoken)
    except ConfigError:
        found = None
    if found is None:
        known = ", ".join(dialects()), ", ".join(provider_names())
        msg = f"unknown target; there are the dialects {known[0]} and the providers {known[1]}"
        raise ConfigError(msg)
    return found.target(named or model)
