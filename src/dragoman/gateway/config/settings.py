"""The gateway's configuration as values: server settings, providers and routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from dragoman.gateway.config.problems import Problem
from dragoman.model.frozen import EMPTY
from dragoman.providers.price import Price
from dragoman.providers.provider import Provider
from dragoman.providers.readiness import is_own_server
from dragoman.transport.protocol import Timeouts

DEFAULT_PORT = 8421
LogForm = Literal["json", "text", "off"]
Period = Literal["total", "day", "month"]
_MEBIBYTE = 1024 * 1024
_DAY = 24 * 3600.0
_NO_PLACES: Mapping[str, Place] = EMPTY


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Base class whose `repr` shows only the fields in `shown`, which hold no secrets."""

    shown: ClassVar[tuple[str, ...]] = ()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.shown]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"


class ServerSettings(_Settings, frozen=True, kw_only=True):
    """The table `[server]`: where to listen, limits, and where things are stored."""

    shown = ("host", "port", "workers")

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    workers: int = 1
    max_body: int = 32 * _MEBIBYTE
    """Maximum bytes of a request body."""
    max_values: int = 100_000
    """Maximum values in a JSON body, whose cost grows with them: five numbers count as one."""
    max_ratio: int = 100
    """How many times its compressed size a body of more than 1 MiB may have."""
    body_memory: int = 2048 * _MEBIBYTE
    """Maximum bytes of all bodies of more than 1 MiB in a worker; of a key's, half of it."""
    max_concurrent: int = 1000
    """Maximum concurrent requests per worker."""
    header_timeout: float = 10.0
    """Seconds to wait for the complete request headers."""
    body_timeout: float = 60.0
    """Seconds to wait for the complete request body."""
    send_timeout: float = 60.0
    """Seconds after which a client that reads none of its response is disconnected."""
    request_timeout: float | None = None
    """Maximum seconds for a request as a whole; None: only the providers' timeouts apply."""
    drain_timeout: float = 30.0
    """Seconds to wait for requests in progress at shutdown."""
    keys: str | None = None
    """URL of the key store; None: no keys."""
    envelope_keys: str | None = None
    """File of the keys that sign provider state; None: they are made, and kept in the key store."""
    history: str | None = None
    """URL of the history store; None: responses are kept in memory, and nothing else."""
    response_memory: int = 64 * _MEBIBYTE
    """Maximum bytes of responses in memory, without a history store; 0: none are kept."""
    response_ttl: float = 30 * _DAY
    """Seconds after which stored responses expire."""
    allowed_hosts: tuple[str, ...] = ()
    """Allowed `Host` headers besides the server's own addresses, if there are no keys."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies, which may say in headers who the client is."""
    log: LogForm = "text"
    log_provider_errors: bool = False
    """Whether the log has the text of providers' errors, which may quote the conversation."""
    middleware: tuple[str, ...] = ()
    """Entry points or `file.py:name`, in the order in which they process a request."""
    middleware_timeout: float = 30.0
    """Maximum seconds for one middleware before a request, and again after a response."""
    cache: str | None = None
    """URL of the Redis cache for routes with a `cache`; None: each worker's memory."""
    cache_size: int = 64 * _MEBIBYTE
    """Maximum bytes of cached responses in a worker's memory."""
    traffic: str | None = None
    """File of recent requests, shown by the web page; None: one in the data folder, named after
    the port; `off`: none."""
    traffic_rows: int = 100_000
    """Number of recent requests to keep; the oldest are dropped."""
    titles: str | None = None
    """The model that writes the titles of the web page's conversations; None: none does."""
    prompts: str | None = None
    """Folder of the web page's prompts; None: that of `dragoman templates`, if only this machine
    is served; `off`: none."""
    keep_bodies: int = 0
    """Bytes of each request and response body to keep for the web page; 0: none."""
    path_prefix: str = ""
    """Prefix of every path, such as `/llm`."""


class Place(_Settings, frozen=True, kw_only=True):
    """A destination for requests: a provider, a custom server, or a model in this process.

    Either `provider` is set, or `model_url` (`local:smollm2`, `echo:`, `scripted:FILE`), which is
    passed to `open_model`. A `[providers.NAME]` table defines one.
    """

    shown = ("name", "provider", "model_url")

    name: str
    provider: Provider | None = None
    model_url: str | None = None
    key_env: str | None = None
    """The environment variable that holds the API key; None: the provider's usual ones."""
    base_url: str | None = None
    base_url_env: str | None = None
    """The environment variable that the address is from; None: it is not from the environment."""
    headers: Mapping[str, str] = EMPTY
    parameters: Mapping[str, str] = EMPTY
    dialect: str | None = None
    timeouts: Timeouts = Timeouts()
    retries: int = 2
    """Retries here before the route's next hop is tried."""

    @property
    def is_presumed(self) -> bool:
        """Whether it is a server on this machine at its usual address: it may not run."""
        return self.provider is not None and self.base_url is None and is_own_server(self.provider)

    def key(self, environ: Mapping[str, str]) -> str | None:
        """The API key in the variable `key_env`; None: use the provider's usual variables."""
        return None if self.key_env is None else environ.get(self.key_env, "").strip() or None

    def secrets(self, environ: Mapping[str, str]) -> Iterator[str]:
        """Its key, and the values of its headers, with and without a scheme."""
        known = () if self.provider is None else self.provider.keys
        for key in (self.key(environ), *map(environ.get, known), *self.headers.values()):
            if key:
                yield from (key.strip(), key.rpartition(" ")[2])


class Hop(_Settings, frozen=True, kw_only=True):
    """One destination of a route: a place, and optionally a model there."""

    shown = ("place", "model", "weight")

    place: Place
    model: str | None = None
    """The model's name there; None: the name that the client requested."""
    weight: int | None = None
    """Its share among adjacent weighted hops; None: a fallback, tried in the order of the file."""


class RouteSettings(_Settings, frozen=True, kw_only=True):
    """A `[[routes]]` table: the model names it matches, and the hops to try."""

    shown = ("model", "to")

    model: str
    """A model name, or a pattern in which `*` matches any text."""
    to: tuple[Hop, ...]
    name: str = ""
    """Its name in logs and metrics; defaults to `model`."""
    defaults: Mapping[str, Any] = EMPTY
    """Request settings for requests that don't set them; see `request_settings`."""
    fixed: Mapping[str, Any] = EMPTY
    """Request settings that override the client's."""
    timeouts: Timeouts | None = None
    """Timeouts that replace those of the providers; None: each provider's own."""
    session: str | None = None
    """The session in which chats are stored; None: the one in the client's header, if any."""
    store: bool | None = None
    """Whether responses may be stored; None: the client decides."""
    cache: float | None = None
    """Seconds to cache a response for identical requests; None: no cache."""
    max_tokens: int | None = None
    """Token budget of the route per `budget_period`."""
    max_cost: Decimal | None = None
    """Budget of the route in US dollars per `budget_period`."""
    budget_period: Period = "total"

    @property
    def is_pattern(self) -> bool:
        """Whether it can match more than one name."""
        return "*" in self.model


class GatewayConfig(_Settings, frozen=True, kw_only=True):
    """The complete configuration of the gateway."""

    shown = ("server", "source")

    server: ServerSettings = ServerSettings()
    places: Mapping[str, Place] = _NO_PLACES
    """By name: those that the routes use; without routes, all that are available."""
    routes: tuple[RouteSettings, ...] = ()
    """Empty: every model is served, as `place:model` and under its plain name."""
    aliases: Mapping[str, str] = EMPTY
    """Additional model names, and the names that they stand for."""
    prices: Mapping[str, Price] = EMPTY
    """Custom prices by `place:model`, `provider:model` or model; `*` matches any text."""
    source: Path | None = None
    """The file that it was loaded from; None: only environment and defaults."""
    warnings: tuple[Problem, ...] = ()
    """What is valid but probably unintended, such as an unset API key variable."""
