"""The dialect contract, and the dialects there are.

A dialect is found by its folder: `dragoman/wire/<name>/` with a `request` module and a `DIALECT`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol

from dragoman.errors import ConfigError, DragomanError, ProviderError
from dragoman.model.jsontext import JsonText
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.context import Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.streams import StreamDecoder, StreamEncoder
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

Body = JsonText | Mapping[str, Any]


class Dialect(Protocol):
    """A wire format, in both directions."""

    @property
    def name(self) -> str:
        """Its name: `openai-chat`, `anthropic` and so on."""
        ...

    @property
    def messages_field(self) -> str:
        """Where a request has its messages."""
        ...

    @property
    def system_field(self) -> str | None:
        """Where a request has its instructions; None where they are messages."""
        ...

    @property
    def target(self) -> Target:
        """What its vendor's own deployment is like; others are variations of it."""
        ...

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """The request in a body (and in its path: Gemini names the model there)."""
        ...

    def encode_request(
        self,
        request: Request,
        target: Target | None = None,
        *,
        strict: bool = False,
        repair: bool = True,
    ) -> Encoded:
        """The body to send for a request, fitted to a target: the vendor's own, if none is given.

        `strict` raises `LossError` where anything can't be said; `repair=False` fits nothing.
        """
        ...

    def decode_response(self, body: Body, context: Context | None = None) -> Response:
        """The response in a body; with the request's context, in the request's own terms.

        A body that is an error, as some servers send under 200, is raised as `ProviderError`.
        """
        ...

    def encode_response(self, response: Response, context: Context | None = None) -> Encoded:
        """The body to answer with for a response to the client's request, if the context has it."""
        ...

    def stream_decoder(self, context: Context | None = None) -> StreamDecoder:
        """What reads one streamed response, in the request's own terms."""
        ...

    def stream_encoder(self, context: Context | None = None) -> StreamEncoder:
        """What writes one response as a stream, as the client asked for it."""
        ...

    def decode_error(
        self, status: int | None, body: Any, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The error in a body, by class; never raises."""
        ...

    def encode_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """The status and the body to answer with for an error."""
        ...

    def check(
        self,
        body: Body,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> list[Violation]:
        """What the target would refuse in a request, rule by rule."""
        ...


def dialect(name: str) -> Dialect:
    """The dialect of that name.

    >>> dialect("anthropic").name
    'anthropic'
    """
    found = _by_name().get(name)
    if found is None:
        msg = f"unknown dialect; there are {', '.join(dialects())}"
        raise ConfigError(msg)
    module: Dialect = import_module(f"dragoman.wire.{found}").DIALECT
    return module


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(sorted(_by_name()))


@cache
def _by_name() -> dict[str, str]:
    """Dialect names and their folders, those with a `request` module; listed, not imported."""
    folders = import_module("dragoman.wire").__path__
    packages = [module.name for module in iter_modules(folders) if module.ispkg]
    return {
        package.replace("_", "-"): package
        for package in packages
        if any(
            module.name == "request"
            for module in iter_modules([f"{folder}/{package}" for folder in folders])
        )
    }
