"""Loads the gateway's configuration from `dragoman.toml` and the environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.gateway.config import checks
from dragoman.gateway.config.discovery import found_places
from dragoman.gateway.config.document import WRONG, Check, Document
from dragoman.gateway.config.hops import HopReader
from dragoman.gateway.config.matching import NamedRoutes
from dragoman.gateway.config.positions import Path as KeyPath
from dragoman.gateway.config.price_table import read_prices
from dragoman.gateway.config.provider_tables import (
    known_provider,
    read_places,
    warn_of_repeated_path,
)
from dragoman.gateway.config.route_tables import read_aliases, read_routes
from dragoman.gateway.config.server_table import read_server
from dragoman.gateway.config.settings import GatewayConfig, Place, RouteSettings, ServerSettings
from dragoman.providers.readiness import is_own_server

DEFAULT_FILE = Path("dragoman.toml")
VARIABLE = "DRAGOMAN_CONFIG"


def _later(_document: Document, _path: KeyPath, value: Any) -> Any:
    return value  # each table is read separately


_TABLES: Mapping[str, Check] = dict.fromkeys(
    ("server", "providers", "routes", "aliases", "prices"), _later
)


def load_config(
    path: Path | None, environ: Mapping[str, str], *, default: Path | None = DEFAULT_FILE
) -> GatewayConfig:
    """Load the configuration; raises `ConfigFileError` with all problems.

    The file is `path`, else the one named by `DRAGOMAN_CONFIG`, else `default` if it exists.
    Without a file, only the environment and the defaults apply.
    """
    source = config_path(path, environ, default=default)
    return _read(Document(None) if source is None else Document.read(source), environ)


def parse_config(
    text: str, environ: Mapping[str, str], *, path: Path = DEFAULT_FILE
) -> GatewayConfig:
    """Like `load_config`, but from a string; problems refer to `path`."""
    return _read(Document(path, text), environ)


def config_path(
    path: Path | None, environ: Mapping[str, str], *, default: Path | None = DEFAULT_FILE
) -> Path | None:
    """The configuration file to load, or None."""
    named = environ.get(VARIABLE, "").strip()
    if path is not None or named:
        return path or Path(named)
    return default if default is not None and default.is_file() else None


def _read(document: Document, environ: Mapping[str, str]) -> GatewayConfig:
    known_provider.cache_clear()
    document.fields((), document.data, _TABLES)
    server = read_server(document, environ)
    hops = HopReader(read_places(document, environ), environ)
    declared = dict(hops.places)
    routes = read_routes(document, hops, server)
    aliases = read_aliases(document, routes)
    _check_titles(document, server, routes, aliases)
    prices = read_prices(document, declared)
    places = hops.places if routes else {**declared, **_others(declared, environ)}
    _check_addresses(document, places, environ)
    document.finish()
    return GatewayConfig(
        server=server,
        places=places,
        routes=routes,
        aliases=aliases,
        prices=prices,
        source=document.path,
        warnings=tuple(document.warnings),
    )


def _check_titles(
    document: Document, server: ServerSettings, routes: tuple[RouteSettings, ...],
    aliases: Mapping[str, str],
) -> None:  # fmt: skip
    name = server.titles
    if name and routes and NamedRoutes(routes).find(aliases.get(name, name)) is None:
        document.warn(("server", "titles"), "no route serves this model: no titles are written")


def _check_addresses(
    document: Document, places: Mapping[str, Place], environ: Mapping[str, str]
) -> None:
    """Check the providers' addresses that are set in the environment, as those in the file are."""
    variables = Document(None)
    for place in places.values():
        name = place.base_url_env
        if name is not None and place.provider is not None and not is_own_server(place.provider):
            address = checks.url(variables, (name,), environ[name].strip())
            if address is not WRONG:
                warn_of_repeated_path(variables, (name,), place.provider, {"base_url": address})
    document.adopt(variables)


def _others(declared: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The discovered places, without those that have a table."""
    found = found_places(environ)
    return {name: place for name, place in found.items() if name not in declared}
