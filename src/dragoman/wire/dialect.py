"""The `Dialect` protocol and the registry of dialects.

Built-in dialects are found by folder: `dragoman/wire/<name>/` with a `codec` module that has
`DIALECT`. Their descriptions are in `dialect` modules, which load no codec.
Installed packages add dialects through entry points in the group `dragoman.dialects`; they can't
replace built-in names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from dragoman.errors import ConfigError, DragomanError, ProviderError
from dragoman.model.jsontext import JsonText
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.spelling import did_you_mean
from dragoman.wire.context import Context
from dragoman.wire.description import Description, guarded, problem_of
from dragoman.wire.encoded import Encoded
from dragoman.wire.entry_points import EntryPoints, Installed
from dragoman.wire.streams import StreamDecoder, StreamEncoder
from dragoman.wire.target import Target
from dragoman.wire.violations import Violation

if TYPE_CHECKING:
    from dragoman.wire.schemas import Profile
    from dragoman.wire.services import Services

Body = JsonText | Mapping[str, Any]


@runtime_checkable
class Dialect(Protocol):
    """A wire format, in both directions."""

    @property
    def name(self) -> str:
        """Its name: `openai-chat`, `anthropic` and so on."""
        ...

    @property
    def description(self) -> Description:
        """How its bodies and messages are recognised."""
        ...

    @property
    def messages_field(self) -> str:
        """The request field that holds the messages."""
        ...

    @property
    def system_field(self) -> str | None:
        """The request field that holds the instructions; None where they are messages."""
        ...

    @property
    def target(self) -> Target:
        """The vendor's own deployment; other targets are variations of it."""
        ...

    @property
    def output_profile(self) -> Profile | None:
        """The supported schema subset for structured output, if it enforces output schemas."""
        ...

    @property
    def schema_profiles(self) -> tuple[Profile, ...]:
        """The JSON Schema subsets its hosts support, where that is not everything."""
        ...

    def decode_request(
        self, body: Body, *, path: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Request:
        """Decode a request from a body (and its path: Gemini puts the model there)."""
        ...

    def encode_request(
        self,
        request: Request,
        target: Target | None = None,
        *,
        strict: bool = False,
        repair: bool = True,
    ) -> Encoded:
        """Encode a request, fitted to a target; by default the vendor's own deployment.

        `strict` raises `LossError` if anything is lost; `repair=False` encodes without fitting.
        """
        ...

    def with_usage_requested(
        self, request: Request, target: Target, *, always: bool = False
    ) -> Request:
        """The request, set to make a stream report its usage where that is optional.

        A request that already sets this option is left unchanged, unless `always` is true.
        """
        ...

    def decode_response(self, body: Body, context: Context | None = None) -> Response:
        """Decode a response; with the request's context, restores its own names and schemas.

        An error body, as some servers send with status 200, is raised as `ProviderError`.
        """
        ...

    def encode_response(self, response: Response, context: Context | None = None) -> Encoded:
        """Encode a response for a client, whose request is in the context if known."""
        ...

    def stream_decoder(self, context: Context | None = None) -> StreamDecoder:
        """A decoder for one streamed response that restores the request's own names and schemas."""
        ...

    def stream_encoder(self, context: Context | None = None) -> StreamEncoder:
        """An encoder that writes one response as a stream, as the client requested it."""
        ...

    def decode_error(
        self, status: int | None, body: Any, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """Decode an error body into the matching exception; never raises."""
        ...

    def encode_error(self, error: DragomanError) -> tuple[int, dict[str, Any]]:
        """The status and body to return to a client for an error."""
        ...

    def check(
        self,
        body: Body,
        path: str | None = None,
        headers: Mapping[str, str] | None = None,
        target: Target | None = None,
    ) -> list[Violation]:
        """List what the target would refuse in a request, rule by rule."""
        ...

    def services(self) -> Services | None:
        """Services besides conversations (embeddings, model lists); None if there are none."""
        ...


def dialect(name: str) -> Dialect:
    """The dialect of that name.

    >>> dialect("anthropic").name
    'anthropic'
    """
    if name in _folders():
        return _own(name)
    added = _ADDED.load(name)
    if added is None:
        _ADDED.refresh()
        added = _ADDED.load(name)
    if added is None:
        names = dialects()
        msg = f"unknown dialect{did_you_mean(name, names)}; available: {', '.join(names)}"
        raise ConfigError(msg)
    return added


@cache
def _own(name: str) -> Dialect:
    found: Dialect = import_module(f"dragoman.wire.{_folders()[name]}.codec").DIALECT
    return found


def dialects() -> tuple[str, ...]:
    """The names of all dialects."""
    return tuple(sorted({*_folders(), *_ADDED.names()}))


def is_dialect(name: str) -> bool:
    """Whether there is a dialect of that name."""
    return name in _folders() or name in _ADDED.names()


def is_own_dialect(name: str) -> bool:
    """Whether a dialect of that name is built in."""
    return name in _folders()


def installed_dialects() -> Installed:
    """The dialects that installed packages add; the same object until that changes."""
    return _ADDED.installed()


def descriptions() -> tuple[Description, ...]:
    """The descriptions of all dialects, without unusable ones from installed packages."""
    added, _ = _ADDED.load_all(without=_folders())
    return (
        *map(_own_description, _folders()),
        *(
            guarded(found.description, partial(_ADDED.report, name))
            for name, found in added.items()
        ),
    )


def description_of(name: str) -> Description | None:
    """The description of a dialect; None if there is no dialect of that name."""
    if name in _folders():
        return _own_description(name)
    if name in _ADDED.names():
        return next((each for each in descriptions() if each.name == name), None)
    return None


@cache
def _own_description(name: str) -> Description:
    found: Description = import_module(f"dragoman.wire.{_folders()[name]}.dialect").DESCRIPTION
    return found


def schema_profiles() -> dict[str, Profile]:
    """The supported JSON Schema subsets of all dialects, by profile name."""
    added, _ = _ADDED.load_all(without=_folders())
    ours = map(dialect, _folders())
    return {
        profile.name: profile
        for found in (*ours, *added.values())
        for profile in found.schema_profiles
    }


def unusable_dialects() -> dict[str, str]:
    """Problems with dialects from installed packages, by name.

    A dialect whose description functions raised stays available by name.
    """
    taken = {
        name: "a built-in dialect has that name" for name in _ADDED.names() if name in _folders()
    }
    _, problems = _ADDED.load_all(without=_folders())
    return {**taken, **{name: str(error) for name, error in problems.items()}, **_ADDED.reported()}


@cache
def _folders() -> dict[str, str]:
    """Names of the built-in dialects and their folders, listed without importing them."""
    folders = import_module("dragoman.wire").__path__
    packages = [module.name for module in iter_modules(folders) if module.ispkg]
    return {
        package.replace("_", "-"): package
        for package in packages
        if any(
            module.name == "codec"
            for module in iter_modules([f"{folder}/{package}" for folder in folders])
        )
    }


def _problem(name: str, found: object) -> str | None:
    """Why the value of an entry point can't be used as the dialect of that name."""
    if isinstance(found, type) or not isinstance(found, Dialect):
        return f"it is a {type(found).__name__}, not a Dialect"
    if found.name != name or found.description.name != name or found.target.dialect != name:
        return "its own name differs from the entry point's name"
    return problem_of(found.description)


_ADDED: EntryPoints[Dialect] = EntryPoints("dragoman.dialects", "dialect", _problem)
