"""How a provider's model is reached: address, key and headers, resolved on use."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from dragoman._version import __version__
from dragoman.errors import (
    ConfigError,
    DragomanError,
    InvalidInputError,
    ModelNotFound,
    ProviderError,
    TransportError,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.spelling import did_you_mean
from dragoman.model.value import expect
from dragoman.providers.provider import BEARER, Provider
from dragoman.providers.readiness import (
    address_around,
    address_variable,
    headers_around,
    unused_variables,
)
from dragoman.providers.registry import provider, suggested_model
from dragoman.transport.protocol import HttpRequest
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.key_masking import masked
from dragoman.wire.target import Target

_KINDS = {"chat": "chat", "embeddings": "embeddings", "embedding": "embeddings"}


class ModelName(msgspec.Struct, frozen=True):
    """A parsed model string."""

    provider: str
    chat: str | None = None
    embeddings: str | None = None

    def __str__(self) -> str:
        return self.provider if self.chat is None else f"{self.provider}:{self.chat}"


def parse_model(text: str) -> ModelName:
    """Parse a model string."""
    expect(text, str, "the name of a model")
    head, question, query = text.partition("?")
    if question and ":" not in head and "/" not in head:
        return _from_query(head, query)
    # Whichever comes first: a model's own name may contain the other.
    colon, slash = head.find(":"), text.find("/")
    ends = [place for place in (colon, slash) if place >= 0]
    if not ends:
        return ModelName(_provider(text))
    place = min(ends)
    model = text[place + 1 :]
    if not model:
        provider(_provider(text[:place]))  # a misspelled one raises, with the correct name
        raise ConfigError(_FORMS)
    return ModelName(_provider(text[:place]), chat=model)


def _from_query(provider: str, query: str) -> ModelName:
    named: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _KINDS or not value:
            raise ConfigError(_FORMS)
        named[_KINDS[key]] = value
    return ModelName(_provider(provider), **named)


def _provider(name: str) -> str:
    if not name.strip():
        raise ConfigError(_FORMS)
    return name


_FORMS = (
    "name a model as provider:model, provider/model, provider, or"
    " provider?chat=model&embeddings=model"
)


_LOG = logging.getLogger("dragoman.transport")
_OURS = {"Content-Type": "application/json", "User-Agent": f"dragoman/{__version__}"}
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Deployment:
    """The address, key and headers of a model.

    The key is looked up when a request is made, not before, so that unused providers need none. The
    user's headers take precedence over ours, and an address over the one in the environment, which
    counts for providers that are named: a `Provider` has its own.
    """

    def __init__(
        self,
        model: str | Provider,
        *,
        key: str | None = None,
        base_url: str | None = None,
        headers: Mapping[str, str] = EMPTY,
        parameters: Mapping[str, str] = EMPTY,
        dialect_name: str | None = None,
    ) -> None:
        self.name = ModelName(model.name) if isinstance(model, Provider) else parse_model(model)
        self.provider = model if isinstance(model, Provider) else _named(self.name)
        self.dialect: Dialect = dialect(dialect_name or self.provider.dialect_of(self.name.chat))
        self._is_named = not isinstance(model, Provider)
        if self._is_named:
            _tell_unused(self.provider)
        self._is_chosen = dialect_name is not None
        self._key = key
        self._base_url = base_url
        self._headers = _checked(headers)
        self._parameters = dict(parameters)
        self._targets: dict[str | None, Target] = {}
        self.lacking: set[tuple[str, str]] = set()  # (dialect, endpoint) pairs; shared by copies

    def reaching(self, model: str | None) -> Deployment:
        """The same deployment in the dialect that a model requires, unless one was chosen."""
        if self._is_chosen or model is None or not self.provider.routes:
            return self
        return self.speaking(self.provider.dialect_of(model))

    def speaking(self, name: str) -> Deployment:
        """The same deployment in another of the provider's dialects."""
        if name == self.dialect.name:
            return self
        other = copy(self)
        other.dialect, other._targets = dialect(name), {}
        return other

    def target(self, model: str | None) -> Target:
        """The target of a model."""
        found = self._targets.get(model)
        if found is None:
            found = self._targets[model] = self.provider.target(model, self.dialect.name)
        return found

    def request(
        self,
        endpoint: str,
        body: bytes | None = None,
        *,
        model: str | None = None,
        headers: Mapping[str, str] = EMPTY,
        method: str = "POST",
    ) -> HttpRequest:
        """A request to one of the provider's endpoints."""
        url = self.provider.url(
            endpoint,
            model=model,
            dialect=self.dialect.name,
            base_url=self._address,
            parameters=self._filled(),
        )
        if not url.startswith(("https://", "http://")):
            what = self._address_variable or f"the base_url of {self.provider.name}"
            msg = f"{what} must start with https:// or http://"
            raise ConfigError(msg)
        around = _checked(headers_around(self.provider, os.environ)) if self._is_named else EMPTY
        ours = {**_OURS, **self.provider.headers, **around, **self._shown_key(), **headers}
        return HttpRequest(url=url, method=method, headers=_merged(ours, self._headers), body=body)

    @property
    def _address(self) -> str | None:
        """The address instead of the provider's own: given, or in the environment."""
        if self._address_variable is None:
            return self._base_url
        return address_around(self.provider, os.environ)

    @property
    def _address_variable(self) -> str | None:
        """The environment variable that the address is in."""
        if self._base_url is not None or not self._is_named:
            return None
        return address_variable(self.provider, os.environ)

    def locate(
        self, error: DragomanError, model: str | None = None, secrets: Iterable[str] = ()
    ) -> None:
        """Add provider, host and model to an error, and mask our keys in the provider's text.

        `secrets` are further texts to mask.
        """
        if not isinstance(error, (TransportError, ProviderError)):
            return
        error.add_request_info(provider=self.provider.name, host=self.host, model=model)
        if isinstance(error, ModelNotFound) and model is not None:
            hint = did_you_mean(model, self._models())
            if not error.reason.endswith(hint):
                error.args = (f"{error.reason}{hint}",)
        if isinstance(error, ProviderError) and error.said:
            error.detail = masked(error.said, (*secrets, *self.secrets()))
        if isinstance(error.__cause__, ProviderError):
            self.locate(error.__cause__, model, secrets)

    def _models(self) -> list[str]:
        return [name for name in self.provider.names if "*" not in name]

    @property
    def host(self) -> str | None:
        """The host of the base URL, with its port if it is not the default one."""
        try:
            return urlsplit(self.url or "").netloc.rpartition("@")[2] or None
        except ValueError:
            return None

    @property
    def url(self) -> str | None:
        """The base URL; None if it is not configured."""
        try:
            return self._address or self.provider.url("models", parameters=self._filled())
        except ConfigError:
            return None

    def secrets(self) -> Iterator[str]:
        """The secrets in our headers, with and without their scheme prefix."""
        with suppress(ConfigError):
            for value in (*self._shown_key().values(), *self._headers.values()):
                yield from (value, value.rpartition(" ")[2])

    def _filled(self) -> dict[str, str]:
        """The parameters of the address: given, or from the environment."""
        found = dict(self._parameters)
        for name, variables in self.provider.parameters.items():
            if name not in found:
                value = next((os.environ[v] for v in variables if os.environ.get(v)), None)
                if value is not None:
                    found[name] = value
        return found

    def _shown_key(self) -> dict[str, str]:
        auth = self.provider.auth or BEARER  # self-hosted servers may require a key
        # A token instead of a key is accepted everywhere, whatever the header for keys is.
        if any(name.lower() in {auth.header.lower(), "authorization"} for name in self._headers):
            return {}
        key = (self._key or self._key_around() or "").strip()
        if key:
            return _checked(auth.headers(key))
        if self.provider.auth is None or self._address is not None or not self.provider.keys:
            return {}
        names = " or ".join(self.provider.keys)
        msg = f"{self.provider.name} needs an API key: set {names}, or pass key= to `Client`"
        raise ConfigError(msg)

    def _key_around(self) -> str | None:
        return next((os.environ[name] for name in self.provider.keys if os.environ.get(name)), None)

    def __repr__(self) -> str:
        return f"Deployment({self.name})"


_told: set[str] = set()
"""The unused variables that were reported: once in a process."""


def _tell_unused(found: Provider) -> None:
    for name in unused_variables(found, os.environ):
        if name not in _told:
            _told.add(name)
            _LOG.warning("%s is set for %s's own SDK; Dragoman does not use it", name, found.name)


def _named(name: ModelName) -> Provider:
    """The provider of a model string; without a colon, it was probably meant as a model."""
    text = name.provider if name.chat is None else f"{name.provider}:{name.chat}"
    try:
        return provider(name.provider, model=text)
    except ConfigError as error:
        problem = str(error)
    is_clear = name.chat is not None or name.embeddings is not None or suggested_model(text)
    form = "" if is_clear else ". Name a model as provider:model, such as openai:gpt-5"
    msg = f"{problem}{form}"
    raise ConfigError(msg)


def _checked(headers: Mapping[str, str]) -> dict[str, str]:
    expect(headers, Mapping, "headers")
    for name, value in headers.items():
        expect(name, str, "the name of a header")
        expect(value, str, "the value of a header")
        if not _NAME.fullmatch(name) or _CONTROL.search(value):
            msg = "a header has an invalid name, or a control character in its value"
            raise InvalidInputError(msg)
    return dict(headers)


def _merged(ours: Mapping[str, str], theirs: Mapping[str, str]) -> dict[str, Any]:
    """All headers; the user's take precedence, whatever their case."""
    taken = {name.lower() for name in theirs}
    return {**{name: ours[name] for name in ours if name.lower() not in taken}, **theirs}
