"""What the tools take and give: their JSON schemas are made from these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from dragoman.errors import InvalidInputError

S = TypeVar("S", bound=Struct)
_LARGEST = 2**53 - 1  # what every JSON reader takes for a whole number
_TEXT = {"type": "string"}  # some models' APIs want it beside an enum
# The texts of msgspec that name types and arguments of ours, and nothing that the caller sent.
_SAFE = re.compile(
    r"(Expected `[\w |]+`(?:, got `\w+`| [<>]= \d+| of length [<>]= \d+)"
    r"|Object missing required field `\w+`)(?: - at `\$\.(?P<place>\w+)`)?"
)
_PLACE = re.compile(r" - at `\$\.(\w+)")

Number = Annotated[int, Meta(ge=0, le=_LARGEST)]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool takes."""


class Result(Struct, frozen=True, kw_only=True):
    """What a tool gives."""


SessionName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=1000,
        description="The session: its id or its name, as list_sessions tells them.",
    ),
]


# --- sessions


class ListSessions(Arguments, frozen=True):
    """Which page of the sessions."""

    limit: Annotated[int, Meta(ge=1, le=100, description="At most this many sessions.")] = 20
    cursor: Annotated[
        str | None, Meta(description="Where the page before ended: its next_cursor.")
    ] = None


class SessionInfo(Result, frozen=True):
    """A session, and what tells which one it is."""

    id: str
    name: Annotated[str, Meta(description="What other tools take for it, beside the id.")]
    identity: Annotated[
        dict[str, str], Meta(description="The names it is kept under: agent, chat, user, …")
    ]
    first_line: Annotated[str | None, Meta(description="What the user said first.")]
    model: Annotated[str | None, Meta(description="The model that answered last.")]
    messages: int
    branches: int
    created_at: str | None
    updated_at: str | None
    unreadable: Annotated[str | None, Meta(description="Why there is no first line.")] = None


class SessionList(Result, frozen=True):
    """A page of the sessions."""

    sessions: list[SessionInfo]
    next_cursor: Annotated[str | None, Meta(description="Null on the last page.")]


class Search(Arguments, frozen=True):
    """What to look for."""

    query: Annotated[
        str,
        Meta(min_length=1, max_length=1000,
             description="Words; a message is found if it holds all of them."),
    ]  # fmt: skip
    session: Annotated[
        SessionName | None, Meta(description="Only in this session: its id or name.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="At most this many messages.")] = 20


class Found(Result, frozen=True):
    """A message that holds the words."""

    session: str
    session_name: str
    number: Annotated[int, Meta(description="Its number: read_session reads around it.")]
    message_id: str
    role: str
    at: str | None
    excerpt: str


class FoundMessages(Result, frozen=True):
    """All that was found."""

    messages: Annotated[list[Found], Meta(description="The latest first.")]


class ReadSession(Arguments, frozen=True):
    """Which messages of a session."""

    session: SessionName
    limit: Annotated[int, Meta(ge=1, le=200, description="At most this many messages.")] = 20
    after: Annotated[
        Number | None,
        Meta(description="Read on from this message number; 0 reads from the beginning."),
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
        int, Meta(ge=1000, le=1_000_000, description="At most about this many characters.")
    ] = 40_000


class SessionText(Result, frozen=True):
    """Messages of a session."""

    session: str
    branch: int
    first: Annotated[int | None, Meta(description="The number of the first message here.")]
    last: Annotated[int | None, Meta(description="The number of the last message here.")]
    more_before: Annotated[bool, Meta(description="Earlier messages: before=first reads them.")]
    more_after: Annotated[bool, Meta(description="Later messages: after=last reads them.")]
    version: Annotated[int, Meta(description="The session's version, for expected_version.")]
    text: Annotated[str, Meta(description="The messages, in the format that was asked for.")]
    unreadable: Annotated[list[str], Meta(description="What can't be read, and why.")] = []


# --- writing


class AppendMessage(Arguments, frozen=True):
    """What to add, and where."""

    session: SessionName
    text: Annotated[str, Meta(min_length=1, max_length=1_000_000)]
    role: Annotated[
        Literal["user", "assistant"], Meta(description="Who says it.", extra_json_schema=_TEXT)
    ] = "user"
    create: Annotated[
        bool, Meta(description="Begin a new session of this name, where there is none.")
    ] = False
    expected_version: Annotated[
        Number | None,
        Meta(description="Fail if the session has another version: somebody else wrote to it."),
    ] = None


class Appended(Result, frozen=True):
    """Where it was added."""

    session: str
    message_id: str
    branch: int
    version: int


class ForkSession(Arguments, frozen=True):
    """Which message to go on from."""

    session: SessionName
    message_id: Annotated[
        str, Meta(min_length=1, max_length=1000, description="The message to go on from.")
    ]


class Forked(Result, frozen=True):
    """The branch that was made."""

    session: str
    branch: int
    forked_at: str


# --- documents

Body = Annotated[
    dict[str, Any] | list[Any] | str,
    Meta(
        description="A request, a response or an array of messages: as JSON, or as its text.",
    ),
]
TargetName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="A dialect, a provider or provider:model; list_dialects tells them.",
    ),
]


class Translate(Arguments, frozen=True):
    """What to translate, and for whom."""

    body: Body
    target: TargetName
    source: Annotated[
        str,
        Meta(min_length=1, max_length=200,
             description="The dialect of the body; auto recognises it."),
    ] = "auto"  # fmt: skip


class LossInfo(Result, frozen=True):
    """Something that could not be said."""

    path: str
    reason: str


class RepairInfo(Result, frozen=True):
    """Something that was changed."""

    path: str
    rule: str
    action: str
    reason: str


class Translated(Result, frozen=True):
    """The translation, and what became of the original."""

    source: Annotated[str, Meta(description="The dialect that the body was in.")]
    body: dict[str, Any]
    losses: Annotated[list[LossInfo], Meta(description="What the target can't be told.")]
    repairs: Annotated[
        list[RepairInfo], Meta(description="What was changed so that the target accepts it.")
    ]
    notes: Annotated[list[LossInfo], Meta(description="What the target has outside of the body.")]


class Check(Arguments, frozen=True):
    """What to check, and for whom."""

    body: Body
    target: TargetName


class ViolationInfo(Result, frozen=True):
    """A rule that is broken."""

    rule: str
    severity: Annotated[Literal["error", "warning"], Meta(extra_json_schema=_TEXT)]
    path: str
    message: str


class Checked(Result, frozen=True):
    """All rules that are broken."""

    accepted: Annotated[bool, Meta(description="Whether no rule is broken: no error was found.")]
    violations: list[ViolationInfo]


class ListDialects(Arguments, frozen=True):
    """Nothing to say."""


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
    """Arguments as a tool takes them; raises without quoting them.

    Numbers may come as texts or with a fraction of zero: some models' APIs send them so.
    """
    try:
        return msgspec.convert(given or {}, kind, strict=False)
    except msgspec.ValidationError as error:
        problem = _explained(str(error), kind)
    except RecursionError:
        problem = "the arguments nest too deeply"
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
    """The JSON schema of a shape, with an object at its root, as the protocol wants it."""
    (_,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root = dict(parts.pop(kind.__name__))
    for part in (root, *parts.values()):
        part.pop("title", None)
        part.pop("description", None)  # of the class, for those who read this file
    return {**root, "$defs": parts} if parts else root


def carried(result: Struct) -> dict[str, Any]:
    """A result in JSON values that the protocol can carry.

    Half a surrogate pair, which JSON can only escape and the SDK can't write, becomes U+FFFD.
    """
    plain: Any = msgspec.to_builtins(result)
    carried: dict[str, Any] = plain if is_carried(plain) else _mended(plain)
    return carried


def is_carried(value: Any) -> bool:
    """Whether these JSON values hold whole characters only."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return False
    return True


def whole_text(text: str) -> str:
    """A text without halves of characters."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return whole_text(value)
    if isinstance(value, dict):
        return {whole_text(key): _mended(inner) for key, inner in value.items()}
    return [_mended(inner) for inner in value] if isinstance(value, list) else value


def document_of(body: Any) -> bytes:
    """The body of a call as JSON text; raises for numbers that JSON does not have.

    The SDK reads `NaN`, which our own writer would turn into `null` without a word.
    """
    if isinstance(body, str):
        return body.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (ValueError, RecursionError) as error:
        is_deep = isinstance(error, RecursionError)
    msg = "the body nests too deeply" if is_deep else "the body holds a number that is out of range"
    raise InvalidInputError(msg)
