"""Arguments and results of the tools; their JSON schemas are made from these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from dragoman.errors import InvalidInputError

S = TypeVar("S", bound=Struct)
_MAX_INTEGER = 2**53 - 1  # the largest integer that every JSON parser reads exactly
_TEXT = {"type": "string"}  # some model APIs require it beside an enum
# Messages of msgspec that only name our types and arguments, and nothing that the caller sent.
_SAFE = re.compile(
    r"(Expected `[\w |]+`(?:, got `\w+`| [<>]= \d+| of length [<>]= \d+)"
    r"|Object missing required field `\w+`)(?: - at `\$\.(?P<place>\w+)`)?"
)
_PLACE = re.compile(r" - at `\$\.(\w+)")

Number = Annotated[int, Meta(ge=0, le=_MAX_INTEGER)]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of a tool."""


class Result(Struct, frozen=True, kw_only=True):
    """The result of a tool."""


SessionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1000,
        description="The session: its id or its name, as returned by list_sessions.",
    ),
]


# --- sessions


class ListSessions(Arguments, frozen=True):
    """Which page of sessions."""

    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of sessions.")] = 20
    cursor: Annotated[str | None, Meta(description="The next_cursor of the previous page.")] = None


class SessionInfo(Result, frozen=True):
    """A session, with what identifies it."""

    id: str
    name: Annotated[str, Meta(description="Its name, which other tools accept like the id.")]
    identity: Annotated[
        dict[str, str], Meta(description="The names it is stored under: agent, chat, user, …")
    ]
    first_line: Annotated[str | None, Meta(description="First line of the first user message.")]
    model: Annotated[str | None, Meta(description="The model that answered last.")]
    messages: int
    branches: int
    created_at: str | None
    updated_at: str | None
    unreadable: Annotated[str | None, Meta(description="Why there is no first line.")] = None


class SessionList(Result, frozen=True):
    """A page of sessions."""

    sessions: list[SessionInfo]
    next_cursor: Annotated[str | None, Meta(description="Null on the last page.")]


class Search(Arguments, frozen=True):
    """What to search for."""

    query: Annotated[
        str,
        Meta(min_length=1, max_length=1000,
             description="Words; finds messages that contain all of them."),
    ]  # fmt: skip
    session: Annotated[
        SessionName | None, Meta(description="Only in this session: its id or name.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of messages.")] = 20


class Found(Result, frozen=True):
    """A message that contains the words."""

    session: str
    session_name: str
    number: Annotated[int, Meta(description="Its number, for read_session.")]
    message_id: str
    role: str
    at: str | None
    excerpt: str


class FoundMessages(Result, frozen=True):
    """All messages found."""

    messages: Annotated[list[Found], Meta(description="Most recent first.")]


class ReadSession(Arguments, frozen=True):
    """Which messages of a session."""

    session: SessionName
    limit: Annotated[int, Meta(ge=1, le=200, description="Maximum number of messages.")] = 20
    after: Annotated[
        Number | None,
        Meta(description="Read from after this message number; 0 starts at the beginning."),
    ] = None
    before: Annotated[
        Number | None, Meta(description="Read the messages before this message number.")
    ] = None
    branch: Annotated[
        Number | None, Meta(description="Read this branch instead of the active one.")
    ] = None
    format: Annotated[
        Literal["markdown", "json"],
        Meta(description="Markdown to read, or a Dragoman document in JSON, complete.",
             extra_json_schema=_TEXT),
    ] = "markdown"  # fmt: skip
    max_chars: Annotated[
        int, Meta(ge=1000, le=1_000_000, description="Approximate maximum number of characters.")
    ] = 40_000


class SessionText(Result, frozen=True):
    """Messages of a session."""

    session: str
    branch: int
    first: Annotated[int | None, Meta(description="The number of the first message here.")]
    last: Annotated[int | None, Meta(description="The number of the last message here.")]
    more_before: Annotated[bool, Meta(description="Earlier messages exist; use before=first.")]
    more_after: Annotated[bool, Meta(description="Later messages exist; use after=last.")]
    version: Annotated[int, Meta(description="The session's version, for expected_version.")]
    text: Annotated[str, Meta(description="The messages, in the requested format.")]
    unreadable: Annotated[list[str], Meta(description="What can't be read, and why.")] = []


# --- writing


class AppendMessage(Arguments, frozen=True):
    """What to add, and where."""

    session: SessionName
    text: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    role: Annotated[
        Literal["user", "assistant"], Meta(description="Its author.", extra_json_schema=_TEXT)
    ] = "user"
    create: Annotated[
        bool, Meta(description="Create a session with this name if there is none.")
    ] = False
    expected_version: Annotated[
        Number | None,
        Meta(description="Fail if the session has another version, because somebody wrote to it."),
    ] = None


class Appended(Result, frozen=True):
    """Where it was added."""

    session: str
    message_id: str
    branch: int
    version: int


class ForkSession(Arguments, frozen=True):
    """Which message to branch from."""

    session: SessionName
    message_id: Annotated[
        str, Meta(min_length=1, max_length=1000, description="The message to continue from.")
    ]


class Forked(Result, frozen=True):
    """The new branch."""

    session: str
    branch: int
    forked_at: str


# --- documents

Body = Annotated[
    dict[str, Any] | list[Any] | str,
    Meta(
        description="A request, a response or an array of messages, as JSON or as JSON text.",
    ),
]
TargetName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="A dialect, a provider or provider:model; see list_dialects.",
    ),
]


class Translate(Arguments, frozen=True):
    """What to translate, and the target."""

    body: Body
    target: TargetName
    source: Annotated[
        str,
        Meta(min_length=1, max_length=200,
             description="The dialect of the body; auto recognises it."),
    ] = "auto"  # fmt: skip


class LossInfo(Result, frozen=True):
    """Something that the target doesn't support."""

    path: str
    reason: str


class RepairInfo(Result, frozen=True):
    """Something that was changed."""

    path: str
    rule: str
    action: str
    reason: str


class Translated(Result, frozen=True):
    """The translation, with losses and repairs."""

    source: Annotated[str, Meta(description="The dialect of the body.")]
    body: dict[str, Any]
    losses: Annotated[list[LossInfo], Meta(description="What the target doesn't support.")]
    repairs: Annotated[
        list[RepairInfo], Meta(description="What was changed so that the target accepts it.")
    ]
    notes: Annotated[list[LossInfo], Meta(description="What the target has outside of the body.")]


class Check(Arguments, frozen=True):
    """What to check, and the target."""

    body: Body
    target: TargetName


class ViolationInfo(Result, frozen=True):
    """A violated rule."""

    rule: str
    severity: Annotated[Literal["error", "warning"], Meta(extra_json_schema=_TEXT)]
    path: str
    message: str


class Checked(Result, frozen=True):
    """All violated rules."""

    accepted: Annotated[bool, Meta(description="Whether no errors were found.")]
    violations: list[ViolationInfo]


class ListDialects(Arguments, frozen=True):
    """No arguments."""


class DialectInfo(Result, frozen=True):
    """A wire format."""

    name: str
    about: str


class Dialects(Result, frozen=True):
    """All wire formats and providers."""

    dialects: list[DialectInfo]
    providers: list[str]


# --- reading arguments, writing schemas


def arguments_of(given: Mapping[str, Any] | None, kind: type[S]) -> S:
    """Parse the arguments of a tool; raises without quoting them.

    Numbers may arrive as strings or with a zero fraction, because some model APIs send them so.
    """
    try:
        return msgspec.convert(given or {}, kind, strict=False)
    except msgspec.ValidationError as error:
        problem = _explained(str(error), kind)
    except RecursionError:
        problem = "the arguments are nested too deeply"
    raise InvalidInputError(problem)


def _explained(text: str, kind: type[Struct]) -> str:
    if safe := _SAFE.fullmatch(text):
        said = safe[1].replace("Object missing required field", "missing argument")
        return f"{safe['place']}: {said}" if safe["place"] else said
    if text.startswith("Object contains unknown field"):
        names = ", ".join(kind.__struct_fields__) or "none"
        return f"unknown argument; the tool's arguments are: {names}"
    place = _PLACE.search(text)
    return f"{place[1] if place else 'an argument'}: this value is not allowed; see the schema"


def schema_of(kind: type[Struct]) -> dict[str, Any]:
    """The JSON schema of a type, with an object at its root, as the protocol requires."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root = dict(parts.pop(kind.__name__))
    for part in (root, *parts.values()):
        part.pop("title", None)
        part.pop("description", None)  # the class docstring, which is for maintainers
    return {**root, "$defs": parts} if parts else root


def carried(result: Struct) -> dict[str, Any]:
    """A result as JSON values that the protocol can carry.

    Lone surrogates, which JSON can only escape and the SDK can't write, become U+FFFD.
    """
    plain: Any = msgspec.to_builtins(result)
    carried: dict[str, Any] = plain if is_carried(plain) else _mended(plain)
    return carried


def is_carried(value: Any) -> bool:
    """Whether these JSON values contain no lone surrogates."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def whole_text(text: str) -> str:
    """The text without lone surrogates."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(key): _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value


def document_of(body: Any) -> bytes:
    """The body of a call as JSON text; raises for numbers that JSON doesn't have.

    The SDK accepts `NaN`, which our own encoder would silently turn into `null`.
    """
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError)
    msg = "the body is nested too deeply" if is_deep else "the body has a number out of range"
    raise InvalidInputError(msg)
