"""What the gateway is told, as values: the server, the places that answer, and the routes."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from dragoman.gateway.config.problems import Problem
from dragoman.model.frozen import EMPTY
from dragoman.providers.price import Price
from dragoman.providers.provider import Provider
from dragoman.transport.protocol import Timeouts

DEFAULT_PORT = 8421
LogForm = Literal["json", "text", "off"]
Period = Literal["total", "day", "month"]
_MEBIBYTE = 1024 * 1024
_DAY = 24 * 3600.0
_NO_PLACES: Mapping[str, Place] = EMPTY


class _Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Values whose `repr` shows the fields that hold no secret."""

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
    max_body: int = 64 * _MEBIBYTE
    """Bytes of a request's body."""
    max_concurrent: int = 1000
    """Requests in progress at once, per worker."""
    header_timeout: float = 10.0
    """Seconds until a request's headers are complete."""
    body_timeout: float = 60.0
    """Seconds until a request's body is complete."""
    send_timeout: float = 60.0
    """Seconds that a client may take no bytes of its answer."""
    request_timeout: float | None = None
    """Seconds for a request as a whole; None: no limit but those of the places."""
    drain_timeout: float = 30.0
    """Seconds that requests in progress have when the server is told to stop."""
    keys: str | None = None
    """URL of the key store; None: no keys."""
    history: str | None = None
    """URL of the history store; None: nothing can be stored."""
    response_ttl: float = 30 * _DAY
    """Seconds that stored responses live."""
    allowed_hosts: tuple[str, ...] = ()
    """Values of the `Host` header besides the server's own addresses."""
    log: LogForm = "text"
    middleware: tuple[str, ...] = ()
    """Entry points or `file.py:name`, in the order in which they see a request."""
    middleware_timeout: float = 30.0
    """Seconds that one middleware may take before a request, and after an answer."""
    cache: str | None = None
    """URL of the Redis that keeps answers for routes with a `cache`; None: each worker's memory."""
    cache_size: int = 64 * _MEBIBYTE
    """Bytes of answers that a worker keeps in its memory."""
    traffic: str | None = None
    """The file of the latest requests, which the page shows; None: one in the data folder, by the
    port; `off`: none."""
    traffic_rows: int = 100_000
    """Requests that are remembered; the oldest are dropped."""
    keep_bodies: int = 0
    """Bytes of each request and answer that are kept with it, for the page; 0: none."""
    path_prefix: str = ""
    """What stands before every path, such as `/llm`."""


class Place(_Settings, frozen=True, kw_only=True):
    """A place that answers: a provider, a server of the user's own, or a model in this process.

    Either `provider` is set, or `model_url` (`local:smollm2`, `echo:`, `scripted:FILE`), which is
    what `open_model` takes.
    """

    shown = ("name", "provider", "model_url")

    name: str
    provider: Provider | None = None
    model_url: str | None = None
    key_env: str | None = None
    """The environment variable that holds the key; None: those that the provider names."""
    base_url: str | None = None
    headers: Mapping[str, str] = EMPTY
    parameters: Mapping[str, str] = EMPTY
    dialect: str | None = None
    timeouts: Timeouts = Timeouts()
    retries: int = 2
    """Further attempts at this place before the next is asked."""

    def key(self, environ: Mapping[str, str]) -> str | None:
        """The key that `key_env` names; None leaves it to the provider's own variables."""
        return None if self.key_env is None else environ.get(self.key_env, "").strip() or None


class Hop(_Settings, frozen=True, kw_only=True):
    """One of the places that a route may go to."""

    shown = ("place", "model", "weight")

    place: Place
    model: str | None = None
    """The model's name there; None: the name that the client gave."""
    weight: int | None = None
    """The share among the weighted hops beside it; None: a plain fallback, asked in its turn."""


class RouteSettings(_Settings, frozen=True, kw_only=True):
    """A `[[routes]]` table: which names it takes, and where they go."""

    shown = ("model", "to")

    model: str
    """A name, or a pattern in which `*` stands for anything."""
    to: tuple[Hop, ...]
    name: str = ""
    """What logs and metrics call it; the model unless the file says otherwise."""
    defaults: Mapping[str, Any] = EMPTY
    """Request settings that count where the client sets none; see `request_settings`."""
    fixed: Mapping[str, Any] = EMPTY
    """Request settings that count whatever the client sets."""
    timeouts: Timeouts | None = None
    """In place of those of its places; None: each place has its own."""
    session: str | None = None
    """The session of the history in which exchanges are stored; None: as the client's header says.
    """
    store: bool | None = None
    """Whether answers may be stored; None: as the client asks."""
    cache: float | None = None
    """Seconds that an answer is given again to the same request; None: no cache."""
    max_tokens: int | None = None
    """Budget of the route in tokens, per `budget_period`."""
    max_cost: Decimal | None = None
    """Budget of the route in US dollars, per `budget_period`."""
    budget_period: Period = "total"

    @property
    def is_pattern(self) -> bool:
        """Whether it takes more than one name."""
        return "*" in self.model


class GatewayConfig(_Settings, frozen=True, kw_only=True):
    """All that the gateway is told."""

    shown = ("server", "source")

    server: ServerSettings = ServerSettings()
    places: Mapping[str, Place] = _NO_PLACES
    """By name: those that the routes use, or where there are no routes, all that can be asked."""
    routes: tuple[RouteSettings, ...] = ()
    """Empty: every place is served, under `place:model` and under the model's plain name."""
    aliases: Mapping[str, str] = EMPTY
    """Further names: what clients ask for, and the name that they mean by it."""
    prices: Mapping[str, Price] = EMPTY
    """The operator's own, by `place:model`, `provider:model` or model; `*` stands for anything."""
    source: Path | None = None
    """The file that it was read from; None: environment and defaults alone."""
    warnings: tuple[Problem, ...] = ()
    """What is allowed and likely unintended, such as a key's variable that is not set."""
