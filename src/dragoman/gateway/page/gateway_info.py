"""The page's first requests: the gateway's capabilities and its models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from dragoman._version import __version__
from dragoman.errors import Corrupt
from dragoman.gateway.config.settings import GatewayConfig, Place
from dragoman.gateway.endpoints import EXACT
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.page.calls import PageCall
from dragoman.gateway.page.tools import page_tools
from dragoman.gateway.state import Gateway
from dragoman.history.records import message_of
from dragoman.history.storage.protocol import Row
from dragoman.interop.text_files import stamp_of
from dragoman.model.catalogue import ModelInfo
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.providers.documents.reading import CANONICAL
from dragoman.providers.registry import providers
from dragoman.wire.dialect import descriptions

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
