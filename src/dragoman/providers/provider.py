"""`Provider`: the URLs, keys, targets and model-specific flags of a provider."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import is_
from typing import Any, Literal, get_args
from urllib.parse import quote

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.value import Value, expect, expect_fields, own_tuple
from dragoman.providers.endpoints import USUAL, Endpoints
from dragoman.providers.facts.names import base_of, is_listed, without_guesses
from dragoman.providers.family import Family, compiled, own_map
from dragoman.wire.target import Target

__all__ = ["BEARER", "Auth", "Family", "Provider"]


class Auth(Value, frozen=True):
    """How an API key is sent: the header, and the prefix before the key."""

    header: str = "Authorization"
    scheme: str | None = "Bearer"

    def headers(self, key: str) -> dict[str, str]:
        """The header for a key."""
        return {self.header: key if self.scheme is None else f"{self.scheme} {key}"}


BEARER = Auth()
Selector = Literal["model", "host", "address"]
"""What a request field selects: the model (or another model, if that fails), which of several hosts
serves it, or the address and credentials of a server."""
_WHOSE = ("provider", "model")
_CACHE_SIZE, _MAX_CACHED_NAME = 256, 128
_VERSION = re.compile(r"/v\d+[a-z0-9]*\Z")
_kept: dict[tuple[str, str | None, str], tuple[tuple[Any, ...], Target]] = {}
"""A cache of targets with their inputs: a program uses few, repeatedly."""


class Provider(Value, frozen=True, gc=True):
    """An API host that speaks one or several dialects.

    >>> acme = Provider("acme", (Target(dialect="openai-chat"),), "https://api.acme.example/v1")
    >>> acme.target("large").model
    'large'
    """

    name: str
    targets: tuple[Target, ...]
    """One target for each dialect; the first is the default."""
    base_url: str | None = None
    """The base URL; names in braces are filled in. None: the user must set it."""
    auth: Auth | None = BEARER
    """How the API key is sent; None if there are no keys."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the API key, in order of preference."""
    headers: Mapping[str, str] = EMPTY
    """Additional headers for every request."""
    address_variables: Mapping[str, str] = EMPTY
    """Environment variables that may hold another address, in order of preference, and the path to
    append to each: those of the provider's own SDKs and tools."""
    header_variables: Mapping[str, str] = EMPTY
    """Environment variables that hold the value of a header, and the header."""
    unused_variables: tuple[str, ...] = ()
    """Variables of the provider's SDKs that change requests there, but not here."""
    model_pattern: str | None = None
    """A regular expression for the beginning of its models' names, to complete names without a
    provider in error messages."""
    families: tuple[Family, ...] = ()
    """Flags that differ for some models; all matching rows apply, later ones override."""
    routes: Mapping[str, str] = EMPTY
    """By pattern of model names: their dialect, if it is not the default."""
    endpoints: Mapping[str, Endpoints] = EMPTY
    """Paths that differ from the vendor's, by dialect."""
    parameters: Mapping[str, tuple[str, ...]] = EMPTY
    """Parameters of URLs by name, and the environment variables for them."""
    defaults: Mapping[str, str] = EMPTY
    """Default values of URL parameters."""
    aliases: tuple[str, ...] = ()
    """Alternative names."""
    prefixes: tuple[str, ...] = ()
    """Optional prefixes of model names, such as Google's `models/`."""
    selectors: Mapping[str, Selector] = EMPTY
    """Request fields besides `model` with which clients choose a model, a host or an address."""
    names: tuple[str, ...] = ()
    """The models that the vendor lists, without dates; `*` is a wildcard. Empty if users name them,
    or if unknown. For unlisted models, no flag is assumed that would leave something out."""

    def __post_init__(self) -> None:
        expect(self.name, str, "Provider.name")
        own_tuple(self, "targets", Target)
        own_tuple(self, "families", Family)
        own_tuple(self, "keys", str)
        own_tuple(self, "unused_variables", str)
        own_tuple(self, "aliases", str)
        own_tuple(self, "prefixes", str)
        own_tuple(self, "names", str)
        for name in ("headers", "routes", "defaults", "address_variables", "header_variables"):
            own_map(self, name, str)
        own_map(self, "endpoints", Endpoints)
        own_map(self, "parameters", tuple)
        own_map(self, "selectors", str)
        expect_fields(self, base_url=str, auth=Auth, model_pattern=str)
        if self.model_pattern is not None:
            try:
                compiled(self.model_pattern)
            except re.error:
                msg = "Provider.model_pattern is not a valid regular expression"
                raise InvalidInputError(msg) from None
        if not self.name or ":" in self.name or not self.targets:
            msg = "a provider needs a name without a colon, and at least one target"
            raise InvalidInputError(msg)
        if not set(get_args(Selector)).issuperset(self.selectors.values()):
            msg = "a selector's value must be model, host or address"
            raise InvalidInputError(msg)

    @property
    def dialects(self) -> tuple[str, ...]:
        """The names of its dialects."""
        return tuple(target.dialect for target in self.targets)

    def dialect_of(self, model: str | None = None) -> str:
        """The dialect for a model."""
        named = self._bare(model)
        for pattern, dialect in self.routes.items() if named is not None else ():
            if compiled(pattern).match(named or ""):
                return dialect
        return self.targets[0].dialect

    def _bare(self, model: str | None) -> str | None:
        """A model name without an optional prefix."""
        if model is None:
            return None
        found = next((prefix for prefix in self.prefixes if model.startswith(prefix)), "")
        return model.removeprefix(found) or model

    def target(self, model: str | None = None, dialect: str | None = None) -> Target:
        """The target for a model, or for the provider in general if none is given."""
        model = self._bare(model)
        spoken = dialect or self.dialect_of(model)
        base = next((target for target in self.targets if target.dialect == spoken), None)
        if base is None:
            msg = (
                f"{self.name} does not support this dialect; it supports {', '.join(self.dialects)}"
            )
            raise ConfigError(msg)
        if model is not None and len(model) > _MAX_CACHED_NAME:
            return self._target(model, base)
        key, made_of = (self.name, model, spoken), (base, self.families, self.names)
        kept = _kept.get(key)
        if kept is None or not all(map(is_, kept[0], made_of)):
            if len(_kept) >= _CACHE_SIZE:
                _kept.clear()
            _kept[key] = kept = made_of, self._target(model, base)
        return kept[1]

    def _target(self, model: str | None, base: Target) -> Target:
        changes: dict[str, Any] = {"provider": self.name, "model": model}
        for family in self.rows_of(model, base.dialect):
            changes |= family.changes
        if model is not None and self.names and not is_listed(self.names, model):
            changes = {**without_guesses(changes), **{name: changes[name] for name in _WHOSE}}
            changes["host.other_models"] = self.names
        return base.with_flags(changes)

    def rows_of(self, model: str | None, dialect: str) -> list[Family]:
        """The families that match a model, in the order in which they apply."""
        if model is None:
            return []
        name = base_of(model)
        return [row for row in self.families if row.dialect in {None, dialect} and row.covers(name)]

    def url(
        self,
        endpoint: str = "generate",
        *,
        model: str | None = None,
        dialect: str | None = None,
        base_url: str | None = None,
        parameters: Mapping[str, str] = EMPTY,
    ) -> str:
        """The full URL of an endpoint: `generate`, `stream`, `embed`, `count` or `models`."""
        model = self._bare(model)
        spoken = dialect or self.dialect_of(model)
        base, paths = base_url or self.base_url, self.endpoints.get(spoken) or USUAL.get(spoken)
        path = getattr(paths, endpoint, None)
        if endpoint == "stream" and path is None:
            path = getattr(paths, "generate", None)
        if base is None or path is None:
            msg = f"{self.name} has no URL for this endpoint; set base_url or use another endpoint"
            raise ConfigError(msg)
        given = {**self.defaults, **parameters}
        if model is not None:
            given["model"] = model
        filled = {name: quote(value, safe="@") for name, value in given.items()}
        try:
            return f"{base.rstrip('/')}{path}".format_map(filled)
        except KeyError as missing:
            msg = f"the URL of {self.name} needs the parameter {missing.args[0]}"
        except (ValueError, IndexError, AttributeError):
            msg = f"the URL of {self.name} has invalid braces"
        raise ConfigError(msg)

    def repeated_path(self, base_url: str, dialect: str | None = None) -> str | None:
        """The end of a base URL that all requests' paths begin with too; None if it is fine.

        >>> google = Provider("g", (Target(dialect="gemini"),))
        >>> google.repeated_path("https://g.example/v1beta/")
        '/v1beta'
        """
        spoken = dialect or self.targets[0].dialect
        paths = self.endpoints.get(spoken) or USUAL.get(spoken)
        steps = [] if paths is None else paths.generate.partition("{")[0].strip("/").split("/")
        base = base_url.rstrip("/")
        for count in range(len(steps), 0, -1):
            end = "/".join(["", *steps[:count]])
            if base.endswith(end):
                return end
        version = _VERSION.search(base)  # another than theirs, before theirs
        return version[0] if version and steps and _VERSION.match(f"/{steps[0]}") else None

    def _sizes(self) -> Iterator[str]:
        yield self.name
        yield from self.dialects
