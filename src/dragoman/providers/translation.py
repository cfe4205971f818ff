"""Translate a request from one wire format to another in one call, fitted to a target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Lock

from msgspec import Struct

from dragoman.errors import ConfigError
from dragoman.model.requests import Request
from dragoman.providers.provider import Provider
from dragoman.providers.registry import provider, provider_names, stamp
from dragoman.wire.dialect import Body, Dialect, dialect, dialects, is_dialect, is_own_dialect
from dragoman.wire.encoded import Encoded
from dragoman.wire.lane.heads import Asked, Translated
from dragoman.wire.lane.plain import Lane
from dragoman.wire.lane.requests import translated
from dragoman.wire.lane.switch import SWITCH
from dragoman.wire.plain.reading import Reader
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
    """Translate a request to another dialect, fitted to a target.

    `strict` raises `LossError` if anything is lost. `repair=False` keeps what the target would
    refuse.

    The target is the name of a dialect or provider, `provider:model`, or a `Target` or
    `Provider`. A model in the target replaces the request's.

    >>> translate({"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    ...           source="openai-chat", target="gemini").body
    {'contents': [{'role': 'user', 'parts': [{'text': 'Hi'}]}]}
    """
    encoded = _plainly(body, source, target) if repair and headers is None else None
    if encoded is None and headers is None:
        asked = _asked(source, target, path, repair=bool(repair))
        encoded = None if asked is None else translated(body, asked)
    if encoded is None:
        encoded = _general(body, source, target, path, headers, repair=repair).encoded
    return encoded.or_raise() if strict else encoded


def _plainly(body: Body, source: str, target: str | Target | Provider) -> Encoded | None:
    """Translate a request that is read by its types; None if it is not, or stays in its dialect.

    This needs no head, so it comes before those that the lane remembers.
    """
    if type(body) is not bytes or not SWITCH.is_on:
        return None
    if type(target) is str and (route := _ROUTES.get((source, target))) is not None:
        request = route[0].request(body)
        return None if request is None else route[1].encode_request(request)
    if not is_own_dialect(source):
        return None
    reader = getattr(dialect(source), "reader", None)
    if reader is None or not reader.is_first or _speaks(target, source):
        return None
    if type(target) is str and is_own_dialect(target):
        _ROUTES[source, target] = reader, dialect(target)
    request = reader.request(body)
    return None if request is None else _encoded(request, target, repair=True).encoded


_ROUTES: dict[tuple[str, str], tuple[Reader, Dialect]] = {}
"""The readers and the writers of pairs of built-in dialects, which never change."""


def _speaks(target: str | Target | Provider, source: str) -> bool:
    """Whether a target may speak the dialect."""
    if isinstance(target, Target):
        return target.dialect == source
    if isinstance(target, str):
        if is_own_dialect(target):
            return target == source
        if ":" in target:
            return target_of(target).dialect == source
    return True


def _general(
    body: Body,
    source: str,
    target: str | Target | Provider,
    path: str | None,
    headers: Mapping[str, str] | None,
    *,
    repair: bool,
) -> Translated:
    """Translate on the general path."""
    request = dialect(source).decode_request(body, path=path, headers=headers)
    return _encoded(request, target, repair=repair)


def _encoded(request: Request, target: str | Target | Provider, *, repair: bool) -> Translated:
    if isinstance(target, str) and is_dialect(target):
        writing = dialect(target)
        encoded = writing.encode_request(request, repair=repair)
        return Translated(request, encoded, writing.target, is_named=False)
    found = target if isinstance(target, Target) else target_of(target, request.model)
    if found.model is not None and found.model != request.model:
        request = request.replace(model=found.model)
    encoded = dialect(found.dialect).encode_request(request, found, repair=repair)
    return Translated(request, encoded, found, is_named=True)


class _Kept(Struct, frozen=True, eq=False):
    """A cached lane setup with its inputs."""

    asked: Asked
    target: str | Target | Provider
    """Kept alive, so that its id is not reused."""
    stamp: object
    """The registry's stamp at that time; None if irrelevant."""


_CACHE_SIZE = 1024
_kept: dict[tuple[object, object, object, object], _Kept] = {}
_keeping = Lock()


def _asked(
    source: str, target: str | Target | Provider, path: str | None, *, repair: bool
) -> Asked | None:
    """Everything that determines the translation except the body; None if there is no lane."""
    if type(source) is not str or (path is not None and type(path) is not str):
        return None
    place = (source, target if type(target) is str else (id(target),), path, repair)
    kept = _kept.get(place)
    if kept is not None and (kept.stamp is None or kept.stamp == stamp()):
        return kept.asked
    lane = lane_of(source)
    if lane is None or not isinstance(target, (str, Target, Provider)):
        return None
    # Built-in dialects never change; other names may change their meaning.
    is_fixed = not isinstance(target, str) or is_own_dialect(target)
    general = partial(
        _general, source=source, target=target, path=path, headers=None, repair=repair
    )
    asked = Asked(lane, object(), repair, general, lane_of)
    with _keeping:
        while len(_kept) >= _CACHE_SIZE:
            del _kept[next(iter(_kept))]
        _kept[place] = _Kept(asked, target, None if is_fixed else stamp())
    return asked


def lane_of(name: str) -> Lane | None:
    """The fast path of a built-in dialect; None if it has none."""
    if not is_own_dialect(name):
        return None  # an installed dialect may be derived from a built-in one
    found: Lane | None = getattr(dialect(name), "lane", None)
    return found


def target_of(name: str | Provider, model: str | None = None) -> Target:
    """The target for a provider or `provider:model`, else for the given model.

    >>> target_of("groq:llama-3.3-70b-versatile").dialect
    'openai-chat'
    """
    if isinstance(name, Provider):
        return name.target(model)
    spoken, colon, named = name.partition(":")
    if not spoken or (colon and not named):
        msg = "a target must be a dialect, a provider or provider:model"
        raise ConfigError(msg)
    try:
        found = provider(spoken)
    except ConfigError:
        found = None
    if found is None:
        known = ", ".join(dialects()), ", ".join(provider_names())
        msg = f"unknown target; available are the dialects {known[0]} and the providers {known[1]}"
        raise ConfigError(msg)
    return found.target(named or model)
