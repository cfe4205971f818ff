"""Translates a client's request for an upstream, from bytes to bytes where possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.large_bodies import has_more_values
from dragoman.gateway.upstreams import Upstream
from dragoman.model.requests import Request
from dragoman.providers.translation import lane_of
from dragoman.wire.encoded import Encoded
from dragoman.wire.known_fields import without_spellings
from dragoman.wire.lane.heads import Asked, Translated
from dragoman.wire.lane.plain import NotPlain
from dragoman.wire.lane.requests import translated

_MAX_CACHED = 1024
_MAX_HEAD = 10_000
"""Values of a head, such as those of its tools: larger ones are not translated on the loop."""
_UNSET = (None, ())


class Settings:
    """The request settings of a route; compared by identity."""

    __slots__ = ("defaults", "fixed")

    def __init__(
        self, defaults: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None
    ) -> None:
        self.defaults = dict(defaults or {})
        """Used where the request sets nothing."""
        self.fixed = dict(fixed or {})
        """Override what the request sets."""

    def applied(self, request: Request) -> Request:
        """The request with these settings."""
        if not (self.defaults or self.fixed):
            return request
        defaults = {
            name: value for name, value in self.defaults.items() if _value(request, name) in _UNSET
        }
        if self.fixed and request.extras:
            request = without_spellings(request, self.fixed)
        return request.with_settings(**{**defaults, **self.fixed})


NO_SETTINGS = Settings()


class Translations:
    """Translates requests; caches everything that depends on more than the body."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Asked | None] = {}

    def translate(
        self,
        client_request: ClientRequest,
        upstream: Upstream,
        model: str | None,
        settings: Settings,
    ) -> Encoded | None:
        """Translate a plain request from bytes to bytes; None if it must be decoded."""
        key = (
            client_request.front.name, upstream, model, settings, client_request.path,
            client_request.headers and tuple(client_request.headers.items()),
        )  # fmt: skip
        try:
            asked = self._kept[key]
        except KeyError:
            asked = self._keep(key, _asked(client_request, upstream, model, settings))
        if asked is None:
            return None
        return translated(client_request.body, asked, client_request.fields)

    def _keep(self, key: tuple[Any, ...], asked: Asked | None) -> Asked | None:
        if len(self._kept) >= _MAX_CACHED:
            self._kept.clear()
        self._kept[key] = asked
        return asked


def _value(request: Request, name: str) -> Any:
    found = getattr(request.sampling, name, None)
    return getattr(request, name, None) if found is None else found


def encoded_for(
    request: Request, upstream: Upstream, model: str | None, settings: Settings = NO_SETTINGS
) -> Translated:
    """Encode a decoded request for an upstream."""
    target = upstream.target(model)
    speaking = upstream.dialect(model)
    # Not `replace`: a different name for the same model must not make its thinking count as that
    # of another model.
    request = settings.applied(request.replace_unchecked(model=model))
    if request.stream:
        request = speaking.with_usage_requested(request, target, always=True)
    encoded = speaking.encode_request(request, target)
    return Translated(request, encoded, target, is_named=True)


def _asked(
    client_request: ClientRequest, upstream: Upstream, model: str | None, settings: Settings
) -> Asked | None:
    lane = lane_of(client_request.front.name)
    if lane is None:
        return None

    read = client_request.reader  # this function is cached: it must not hold the request

    def general(body: bytes) -> Translated:
        if has_more_values(body, _MAX_HEAD):
            raise NotPlain
        return encoded_for(read(body), upstream, model, settings)

    return Asked(lane, object(), repair=True, general=general, lane_of=lane_of)
