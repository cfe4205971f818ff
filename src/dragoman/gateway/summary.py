"""A human-readable summary of a configuration, shown at startup and by `--check`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from dragoman.gateway.config.settings import (
    GatewayConfig,
    Hop,
    Place,
    RouteSettings,
    ServerSettings,
)
from dragoman.gateway.guard import is_loopback
from dragoman.gateway.recent_responses import MAX_IDLE, MAX_RESPONSES
from dragoman.providers.readiness import is_own_server, key_variable, unused_variables


def summary(
    config: GatewayConfig, environ: Mapping[str, str] = os.environ, *, most: int | None = None
) -> Iterator[str]:
    """Yield lines about the file, its routes, aliases, providers, keys and warnings."""
    yield f"configuration: {config.source or 'none; serving every model found on this machine'}"
    yield from _listed("routes", [_route(each) for each in config.routes], most)
    if config.aliases:
        pairs = [f"{name} = {meant}" for name, meant in config.aliases.items()]
        yield from _listed("aliases", pairs, most)
    places = [_place(each, environ) for each in config.places.values()]
    yield from _listed("providers", places, most)
    if not places:
        yield "no models: set a provider's API key, such as OPENAI_API_KEY, or write dragoman.toml"
    yield _keys_line(config)
    yield _responses_line(config.server)
    yield from _environment(config, environ)
    for warning in config.warnings:
        yield f"warning: {warning}"


def _environment(config: GatewayConfig, environ: Mapping[str, str]) -> Iterator[str]:
    """What the environment changes about providers, so that nobody wonders where keys go."""
    for place in config.places.values():
        if place.base_url_env is not None:
            what = "requests" if _key(place, environ) == "no key" else "requests and the key"
            yield f"{place.base_url_env} sends {what} of {place.name} to {place.base_url}"
        for name in () if place.provider is None else unused_variables(place.provider, environ):
            yield f"warning: {name} is set for {place.name}'s own SDK; Dragoman does not use it"


def _listed(name: str, rows: list[str], most: int | None) -> Iterator[str]:
    if not rows:
        return
    yield f"{name}:"
    for row in rows[:most]:
        yield f"  {row}"
    if most is not None and len(rows) > most:
        yield f"  and {len(rows) - most} more (`dragoman serve --check` shows all)"


def _route(route: RouteSettings) -> str:
    hops = (
        " | ".join(map(_hop, route.to))
        if _is_weighted(route)
        else ", then ".join(map(_hop, route.to))
    )
    name = f" ({route.name})" if route.name not in {"", route.model} else ""
    return f"{route.model}{name} -> {hops}"


def _is_weighted(route: RouteSettings) -> bool:
    return len(route.to) > 1 and all(hop.weight is not None for hop in route.to)


def _hop(hop: Hop) -> str:
    weight = "" if hop.weight is None else f" x{hop.weight}"
    return f"{hop.place.name}{':' if hop.model else ''}{hop.model or ''}{weight}"


def _place(place: Place, environ: Mapping[str, str]) -> str:
    if place.provider is None:
        return f"{place.name} (a model in this process)"
    kind = place.provider.name
    named = "" if kind == place.name else f" ({kind})"
    if place.base_url is None and is_own_server(place.provider):
        return f"{place.name}{named} at {place.provider.base_url}, if running"
    where = f" at {place.base_url}" if place.base_url else ""
    return f"{place.name}{named}{where}: {_key(place, environ)}"


def _key(place: Place, environ: Mapping[str, str]) -> str:
    provider = place.provider
    if place.key_env is not None:
        is_set = bool(environ.get(place.key_env, "").strip())
        return "key set" if is_set else f"key missing: {place.key_env}"
    if provider is None or provider.auth is None or is_own_server(provider):
        return "no key"
    if key_variable(provider, environ) is not None:
        return "key set"
    is_wanted = provider.keys and place.base_url is None
    return f"key missing: {' or '.join(provider.keys)}" if is_wanted else "no key"


def _keys_line(config: GatewayConfig) -> str:
    server = config.server
    if server.keys is not None:
        return "keys: required (`dragoman keys create` makes one)"
    if is_loopback(server.host):
        return "keys: none; every program on this machine may use the gateway"
    return "keys: none; without keys only 127.0.0.1 is allowed (set `keys` in [server])"


def _responses_line(server: ServerSettings) -> str:
    if server.history is not None:
        return "stored responses: in the history store"
    if not server.response_memory:
        return "stored responses: none (set `history` in [server])"
    if server.workers > 1:
        return "stored responses: none; workers share no memory (set `history` in [server])"
    size, idle = server.response_memory / 1024**2, min(server.response_ttl, MAX_IDLE) / 60
    return (
        f"stored responses: in memory, up to {size:g} MiB and {MAX_RESPONSES:,}, for {idle:g}"
        " minutes after their last use (set `history` in [server] to keep them)"
    )
