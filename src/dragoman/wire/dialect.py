"""The dialect contract, and the dialects there are.

Ours are found by their folders: `dragoman/wire/<name>/` with a `codec` module and its `DIALECT`.
What tells them apart is in their `dialect` modules, which load no codec.
Installed packages add others by entry points of the group `dragoman.dialects`, and can't take the
names of ours.
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
        """How its bodies and messages are told from others'."""
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

    @property
    def output_profile(self) -> Profile | None:
        """What it takes of the schema of an answer, where it holds every answer to its schema."""
        ...

    @property
    def schema_profiles(self) -> tuple[Profile, ...]:
        """What its hosts take of JSON Schema, where that is not everything."""
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

    def asking_for_usage(
        self, request: Request, target: Target, *, always: bool = False
    ) -> Request:
        """The request for a stream that tells what it cost, where that has to be asked for.

        A request that says whether to tell is left as it is, unless it is `always` to be told.
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

    def services(self) -> Services | None:
        """What it has besides conversations (embeddings, lists of models); None: nothing."""
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
        msg = f"unknown dialect{did_you_mean(name, names)}; there are {', '.join(names)}"
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
    """Whether a dialect of that name is part of this library."""
    return name in _folders()


def installed_dialects() -> Installed:
    """What installed packages add: the same object until that changes."""
    return _ADDED.installed()


def descriptions() -> tuple[Description, ...]:
    """How all dialects look; what an installed package adds is left out if it can't be used."""
    added, _ = _ADDED.load_all(without=_folders())
    return (
        *map(_own_description, _folders()),
        *(
            guarded(found.description, partial(_ADDED.report, name))
            for name, found in added.items()
        ),
    )


def description_of(name: str) -> Description | None:
    """How the dialect of that name looks; None where there is none."""
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
    """What targets take of JSON Schema: the profiles of all dialects, by name."""
    added, _ = _ADDED.load_all(without=_folders())
    ours = map(dialect, _folders())
    return {
        profile.name: profile
        for found in (*ours, *added.values())
        for profile in found.schema_profiles
    }


def unusable_dialects() -> dict[str, str]:
    """What is wrong with dialects that installed packages add, by name.

    Those whose description raised are left in use: whoever asks for one by name gets it.
    """
    taken = {
        name: "there is one of that name already" for name in _ADDED.names() if name in _folders()
    }
    _, problems = _ADDED.load_all(without=_folders())
    return {**taken, **{name: str(error) for name, error in problems.items()}, **_ADDED.reported()}


@cache
def _folders() -> dict[str, str]:
    """The names of our own dialects and their folders, which are listed, not imported."""
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
    """What keeps the value of an entry point from being used as the dialect of that name."""
    if isinstance(found, type) or not isinstance(found, Dialect):
        return f"it is a {type(found).__name__}, not a Dialect"
    if found.name != name or found.description.name != name or found.target.dialect != name:
        return "it calls itself by another name"
    return problem_of(found.description)


_ADDED: EntryPoints[Dialect] = EntryPoints("dragoman.dialects", "dialect", _problem)
