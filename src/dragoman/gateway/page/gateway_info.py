"""What the page asks about the gateway: capabilities, models, tools, keys and routes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from copy import copy
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from time import time
from typing import Any
from urllib.parse import urlsplit

from dragoman._version import __version__
from dragoman.agent.harmless_tools import calculate, now
from dragoman.errors import Corrupt, InvalidInputError, InvalidRequest, NotFound, StoreError
from dragoman.gateway.config.settings import GatewayConfig, Hop, Place, RouteSettings
from dragoman.gateway.endpoints import EXACT
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.keys.keys import Keys
from dragoman.gateway.keys.records import Budget, KeyRecord, UsageRow
from dragoman.gateway.keys.store import Standing
from dragoman.gateway.page import traffic_queries as queries
from dragoman.gateway.page.calls import PageCall, field
from dragoman.gateway.state import Gateway
from dragoman.history.records import message_of
from dragoman.history.storage.protocol import Row
from dragoman.interop.text_files import stamp_of
from dragoman.model.catalogue import ModelInfo
from dragoman.model.functions.tool import Tool
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.providers.documents.reading import CANONICAL
from dragoman.providers.registry import providers
from dragoman.wire.dialect import descriptions

# --- the tools that the page offers to models; each call needs the user's approval


@cache
def page_tools() -> tuple[Tool[..., Any], ...]:
    """Returns the tools; all of them require approval."""
    return tuple(_with_approval(each) for each in (now, calculate))


def _with_approval(given: Tool[..., Any]) -> Tool[..., Any]:
    made = copy(given)
    made.requires_approval = True
    return made


# --- the page's first requests

MARKDOWN = "markdown"
"""The export format for reading; it can't be imported again."""
_MAX_MODELS = 2000


async def info(call: PageCall) -> Any:
    """Returns the gateway's capabilities; makes no upstream requests."""
    gateway = call.gateway
    call.page.prepare()
    server = gateway.config.server
    found = sorted(descriptions(), key=lambda each: each.name)
    return {
        "version": __version__,
        "needs_key": gateway.keys is not None,
        "has_keys": gateway.keys is not None,
        "has_history": call.page.is_lasting,
        "is_remembered": server.history is not None,
        "dialects": [each.name for each in found],
        "targets": _targets(),
        "fronts": sorted({each.front for each in EXACT.values()}),
        "formats": formats(),
        "default_model": _default(gateway),
        "tools": [each.name for each in page_tools()],
        "has_traffic": gateway.traffic is not None,
        "has_prompts": call.page.prompts is not None,
        "writes_titles": server.titles is not None,
        "keeps_bodies": server.keep_bodies > 0,
    }


def _targets() -> list[dict[str, str]]:
    """What the lens compares: dialects, and the providers with another name."""
    named = {each.name: each.about for each in sorted(descriptions(), key=lambda each: each.name)}
    named |= {each.name: each.name for each in providers() if each.name not in named}
    return [{"id": name, "label": label} for name, label in named.items()]


def formats() -> list[dict[str, str]]:
    """Returns the export formats: Markdown, and all that `dragoman convert` writes."""
    named = sorted((each.name, each.about) for each in descriptions())
    return [
        {"id": MARKDOWN, "label": "Markdown", "extension": "md"},
        {"id": CANONICAL, "label": "Dragoman (lossless)", "extension": "json"},
        *({"id": name, "label": about, "extension": "json"} for name, about in named),
    ]


def _default(gateway: Gateway) -> str | None:
    """Returns the first configured model, if it is known without requesting a provider's list."""
    config = gateway.config
    if config.routes:
        named = (route.model for route in config.routes if not route.is_pattern)
        names = [*named, *config.aliases]
        return next((name for name in names if not _is_echo(gateway, name)), None)
    places = sorted(config.places.values(), key=_echoes)
    return places[0].model_url if places else None


async def models(call: PageCall) -> Any:
    """Returns the available models, `echo:` last; omits providers that don't respond in time."""
    found = _each_once(call.gateway.config, await call.gateway.router.catalogue.models())
    found.sort(key=lambda each: _is_echo(call.gateway, each.id))
    return {"models": [_model(call, each) for each in found[:_MAX_MODELS]]}


def _each_once(config: GatewayConfig, found: list[ModelInfo]) -> list[ModelInfo]:
    """Returns the models without their plain names, if each is also listed as `place:model`."""
    if config.routes:
        return found
    named = [each.id.partition(":") for each in found]
    qualified = {model for place, _, model in named if place in config.places and model}
    return [each for each in found if each.id not in qualified or each.id in config.aliases]


def _is_echo(gateway: Gateway, model: str) -> bool:
    """Whether a model only repeats what it is told."""
    route = gateway.router.find(model)
    return route is not None and all(_echoes(hop.place) for hop in route.hops)


def _echoes(place: Place) -> bool:
    return (place.model_url or "").startswith("echo:")


def last_asked(gateway: Gateway, rows: Iterable[Row]) -> dict[str, Any]:
    """Returns the model of a conversation's last request, as it is named here, and the options."""
    for row in reversed(list(rows)):
        try:
            message = message_of(row.body)
        except Corrupt:
            continue
        stamp = stamp_of(message)
        if isinstance(stamp.get("model"), str):
            return {"route": stamp["model"], "options": _options(stamp)}
        if message.role is Role.ASSISTANT:
            return {"route": _named(gateway, message), "options": None}
    return {"route": None, "options": None}


def _options(stamp: Mapping[str, Any]) -> dict[str, Any]:
    system, settings = stamp.get("system"), stamp.get("settings")
    return {
        "system": system if isinstance(system, str) else "",
        "settings": settings if isinstance(settings, Mapping) else {},
        "tools": stamp.get("tools") is True,
    }


def _named(gateway: Gateway, answer: Message) -> str | None:
    origin = answer.origin
    if origin is None or origin.model is None:
        return None
    names = (f"{origin.provider}:{origin.model}", origin.model)
    return next((name for name in names if gateway.router.find(name) is not None), None)


def _model(call: PageCall, info: ModelInfo) -> dict[str, Any]:
    route = call.gateway.router.find(info.id)
    place = route.hops[0].place if route is not None and route.hops else None
    made: dict[str, Any] = {
        "id": info.id,
        "name": info.name or info.id,
        "provider": None if place is None else place.name,
        "is_local": place is not None and _is_local(place),
    }
    if info.context_window is not None:
        made["context_window"] = info.context_window
    return made


def _is_local(place: Place) -> bool:
    """Whether the model runs on this machine."""
    if place.provider is None:
        return True
    try:
        return is_loopback(urlsplit(place.base_url or place.provider.base_url or "").hostname or "")
    except ValueError:
        return False


# --- keys with their budgets, and routes with their health

_MAX_KEYS = 1000
_MAX_AMOUNT_LENGTH = 40
_MIN_EXPONENT, _MAX_EXPONENT = -12, 18  # powers of ten
_CONFLICT = 409
_DAY = 86_400.0
_NO_KEY = "there is no key with this id"
_BAD_MODELS = "`models` must be a list of names"
_BAD_BUDGET = "a budget must have a kind, an amount and a period"
_NO_KEYS = "this gateway has no key store: set `keys` in [server]"
_NANOS = Decimal(10**9)
_WINDOWS = {"total": "total", "day": "%Y-%m-%d", "month": "%Y-%m"}


# --- keys


async def keys(call: PageCall) -> Any:
    """Returns all keys, each budget with its usage."""
    store = _keys(call)
    records = list(await store.list())[-_MAX_KEYS:]
    return {"keys": [await _shown(store, each) for each in records]}


async def made(call: PageCall) -> Any:
    """Creates a key. Only this response contains its secret."""
    store, asked = _keys(call), await call.json()
    expires = field(asked, "expires_at", (int, float), None)
    record, secret = await store.create(
        name=field(asked, "name", str, ""),
        models=_texts(field(asked, "models", list, [])),
        requests_per_minute=field(asked, "requests_per_minute", int, None),
        tokens_per_minute=field(asked, "tokens_per_minute", int, None),
        max_concurrent=field(asked, "max_concurrent", int, None),
        budgets=[_budget(each) for each in field(asked, "budgets", list, [])],
        expires_at=None if expires is None else float(expires),
        is_admin=field(asked, "is_admin", bool, default=False),
    )
    return {"key": await _shown(store, record), "secret": secret}


async def revoked(call: PageCall) -> Any:
    """Revokes a key permanently; refuses the key that makes the request."""
    store, id = _keys(call), call.names["id"]
    own = call.inbound.key
    if own is not None and own.id == id:
        msg = "you can't revoke the key that you are using; use another admin key"
        raise InvalidRequest(msg, status=_CONFLICT)
    record = await store.revoke(id)
    return {"key": None if record is None else await _shown(store, record)}


async def usage(call: PageCall) -> Any:
    """Returns a key's usage by model."""
    store, id = _keys(call), call.names["id"]
    if all(each.id != id for each in await store.list()):
        raise NotFound(_NO_KEY)
    rows = await store.usage(id, by=("model",))
    return {"items": [_sums(row) for row in rows]}


def _sums(row: UsageRow) -> dict[str, Any]:
    return {
        "model": row.model, "requests": row.requests, "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out, "cost": str(row.cost),
    }  # fmt: skip


def _keys(call: PageCall) -> Keys:
    found = call.gateway.keys
    if found is None:
        raise InvalidRequest(_NO_KEYS, status=404)
    return found


async def _shown(store: Keys, record: KeyRecord) -> dict[str, Any]:
    """Returns the view of a key. It has no secret: only a hash is stored."""
    standing = await store.standing(record) if record.budgets else None
    return {
        "id": record.id, "name": record.name, "models": list(record.models),
        "requests_per_minute": record.requests_per_minute,
        "tokens_per_minute": record.tokens_per_minute, "max_concurrent": record.max_concurrent,
        "budgets": [] if standing is None else [_used(each, standing) for each in record.budgets],
        "expires_at": record.expires_at, "created_at": record.created_at,
        "revoked_at": record.revoked_at, "is_admin": record.is_admin,
    }  # fmt: skip


def _used(budget: Budget, standing: Standing) -> dict[str, Any]:
    window = datetime.now(UTC).strftime(_WINDOWS[budget.period])
    tokens, nanos = standing.spent.get(window, (0, 0))
    held = [each for each in standing.held if window == "total" or each.day.startswith(window)]
    if budget.kind == "tokens":
        used, reserved = str(tokens), str(sum(each.tokens for each in held))
    else:
        used = f"{nanos / _NANOS:f}"
        reserved = f"{sum(each.nanos for each in held) / _NANOS:f}"
    return {"kind": budget.kind, "amount": f"{budget.amount:f}", "period": budget.period,
            "used": used, "reserved": reserved}  # fmt: skip


def _texts(values: list[Any]) -> list[str]:
    if not all(isinstance(each, str) for each in values):
        raise InvalidInputError(_BAD_MODELS)
    return values


def _budget(asked: Any) -> Budget:
    given = asked if isinstance(asked, Mapping) else {}
    amount = given.get("amount")
    is_text = isinstance(amount, (str, int, float)) and not isinstance(amount, bool)
    text = str(amount) if is_text else ""
    if len(text) <= _MAX_AMOUNT_LENGTH:
        with suppress(InvalidOperation):
            kind, period = given.get("kind", "cost"), given.get("period", "total")
            exact = Decimal(text)
            # 1e-999999999 is a short input, but formatted it would take a gigabyte.
            is_plain = exact.is_finite() and _MIN_EXPONENT <= exact.adjusted() <= _MAX_EXPONENT
            if isinstance(kind, str) and isinstance(period, str) and (is_plain or not exact):
                return Budget(kind, exact + 0, period)  # type: ignore[arg-type]  # `Budget` validates
    raise InvalidInputError(_BAD_BUDGET)


# --- routes


async def routes(call: PageCall) -> Any:
    """Returns the routes, with the health of each hop as this worker sees it."""
    gateway = call.gateway
    stats, spent = await _stats(gateway), await _spent(gateway)
    failures = await gateway.router.catalogue.failures()
    config = gateway.config
    listed = list(config.routes) or [
        RouteSettings(model=f"{place.name}:*", to=(Hop(place=place),), name=place.name)
        for place in config.places.values()
    ]
    found = [_route(gateway, each, stats, spent) for each in listed]
    for hop in [hop for route in found for hop in route["hops"]]:
        hop["unreachable"] = failures.get(hop["place"])
        hop["healthy"] = hop["healthy"] and hop["unreachable"] is None
    return {"routes": found}


def _route(
    gateway: Gateway, settings: RouteSettings, stats: Mapping[str, Any],
    spent: Mapping[tuple[str, str], tuple[int, int]],
) -> dict[str, Any]:  # fmt: skip
    name = settings.name or settings.model
    return {
        "name": name,
        "model": settings.model,
        "hops": [_hop(gateway, each) for each in settings.to],
        "budgets": _budgets(settings, name, spent),
        "requests": 0, "errors": 0, "fallbacks": 0, "p50": None,
        **stats.get(name, {}),
    }  # fmt: skip


def _hop(gateway: Gateway, hop: Hop) -> dict[str, Any]:
    place, health = hop.place, gateway.router.health
    known = health.failing(hop)
    wait = 0.0 if known is None else health.rest(known)
    return {
        "place": place.name,
        "provider": place.model_url if place.provider is None else place.provider.name,
        "model": hop.model,
        "weight": hop.weight,
        "healthy": wait == 0,
        "presumed": place.is_presumed and not gateway.config.routes,
        "failures": 0 if known is None else known.times,
        "last_error": None if known is None else known.error,
        "resting_until": time() + wait if wait else None,
    }


async def _stats(gateway: Gateway) -> Mapping[str, Any]:
    """Returns the request counts of the last day, by route."""
    store = gateway.traffic
    if store is None:
        return {}
    since = time() - _DAY
    with suppress(StoreError):
        return await asyncio.to_thread(store.read, lambda at: queries.by_route(at, since))
    return {}


async def _spent(gateway: Gateway) -> Mapping[tuple[str, str], tuple[int, int]]:
    """Returns tokens and nano-dollars by route and window, as charged to keys."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    has_budgets = any(each.max_tokens or each.max_cost for each in gateway.config.routes)
    if gateway.keys is None or not has_budgets:
        return found
    for row in await gateway.keys.usage(by=("day", "route")):
        for window in ("total", row.day, row.day[:7]):
            tokens, nanos = found.get((row.route, window), (0, 0))
            added = tokens + row.tokens_in + row.tokens_out, nanos + row.nanos
            found[row.route, window] = added
    return found


def _budgets(
    settings: RouteSettings, name: str, spent: Mapping[tuple[str, str], tuple[int, int]]
) -> list[dict[str, Any]]:
    window = datetime.now(UTC).strftime(_WINDOWS[settings.budget_period])
    tokens, nanos = spent.get((name, window), (0, 0))
    limits = (
        ("tokens", settings.max_tokens, str(tokens)),
        ("cost", settings.max_cost, f"{nanos / _NANOS:f}"),
    )
    return [
        {"kind": kind, "amount": f"{amount:f}" if isinstance(amount, Decimal) else str(amount),
         "period": settings.budget_period, "used": used}
        for kind, amount, used in limits if amount is not None
    ]  # fmt: skip
