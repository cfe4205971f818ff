"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.json import Decoder

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import UNSAID, Request, Sampling
from dragoman.model.roles import Role
from dragoman.model.tools import make_call, make_result
from dragoman.wire.fitting.tools import is_blank
from dragoman.wire.openai_chat.dialect import NAME, ORIGIN
from dragoman.wire.openai_chat.layout import decode_message
from dragoman.wire.openai_chat.request import PATH
from dragoman.wire.openai_chat.tables import NULL_CONTENT
from dragoman.wire.openai_chat.tools import known_tools
from dragoman.wire.openai_strict_schemas import openai_profiles
from dragoman.wire.overlay import extras_of
from dragoman.wire.plain.reading import Ids, Readable, blank, copy, put
from dragoman.wire.plain.whole import Made, Whole, reals_of
from dragoman.wire.plain.writing import NotPlain, Written
from dragoman.wire.target import Target


class Function(Struct, forbid_unknown_fields=True, gc=False):
    """A tool's name, and its arguments as text."""

    name: str
    arguments: str


class Call(Struct, forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    type: Literal["function"]
    function: Function


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """A user's text."""

    content: str


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """A model's message."""

    content: str | UnsetType | None = UNSET
    tool_calls: list[Call] | UnsetType = UNSET


class Result(Struct, tag_field="role", tag="tool", forbid_unknown_fields=True, gc=False):
    """A result that is a text."""

    tool_call_id: str
    content: str


class System(Struct, tag_field="role", tag="system", forbid_unknown_fields=True, gc=False):
    """Instructions."""

    content: str


class Developer(Struct, tag_field="role", tag="developer", forbid_unknown_fields=True, gc=False):
    """Instructions by the application's developer."""

    content: str


WRITTEN = Written(
    {"User": User, "Answer": Assistant, "Call": Call, "Function": Function, "Result": Result},
    user="User(t)",
    answer="Answer(t)",
    call="Call(i, 'function', Function(x, a))",
    called="Answer(s, b)",
    result="Result(i, t)",
    parses=False,
)


# --- reading

_USER, _SYSTEM = blank(Role.USER, ORIGIN), blank(Role.SYSTEM, ORIGIN)
_DEVELOPER, _TOOL = blank(Role.DEVELOPER, ORIGIN), blank(Role.TOOL, ORIGIN)
_ANSWER = blank(Role.ASSISTANT, ORIGIN)
_CALLS_ALONE = blank(Role.ASSISTANT, ORIGIN, extras=NULL_CONTENT)
_SPEAKERS = {User: _USER, System: _SYSTEM, Developer: _DEVELOPER}


def read(turns: Iterable[Any]) -> tuple[list[Message], Ids]:
    """The messages, and the ids of their calls."""
    out: list[Message] = []
    ids: Ids = []
    for turn in turns:
        kind = type(turn)
        parts: tuple[Any, ...]
        if kind is Assistant:
            content, calls = turn.content, turn.tool_calls
            if calls is UNSET:
                if type(content) is not str:
                    raise NotPlain
                made, parts = copy(_ANSWER), (Text(content),)
            else:
                found = []
                for call in calls:
                    name, arguments = call.function.name, call.function.arguments
                    if is_blank(arguments):
                        raise NotPlain  # they go back as they came, for which a call has its origin
                    ids.append(call.id)
                    found.append(make_call(call.id, name, arguments))
                if not found:
                    raise NotPlain
                made = copy(_CALLS_ALONE if content is None else _ANSWER)
                parts = (Text(content), *found) if type(content) is str else tuple(found)
        elif kind is Result:
            if not turn.tool_call_id:
                raise NotPlain  # it is matched by its place
            made, parts = copy(_TOOL), (make_result(turn.tool_call_id, turn.content),)
        else:
            made, parts = copy(_SPEAKERS[kind]), (Text(turn.content),)
        put(made, "parts", parts)
        out.append(made)
    return out, ids


_decode = Decoder().decode


def _settle(body: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"sampling": UNSAID}
    if body.model is not UNSET:
        fields["model"] = body.model
    if body.stream is not UNSET:
        fields["stream"] = body.stream
    if body.tools is not UNSET:
        fields["tools"] = _tools(body.tools)
    limit, older = body.max_completion_tokens, body.max_tokens
    word = None
    if limit is not UNSET:
        word = "max_completion_tokens"
        if older is not UNSET:
            raise NotPlain  # two fields for one setting
    elif older is not UNSET:
        word, limit = "max_tokens", older
    if body.temperature is not UNSET or body.top_p is not UNSET:
        _settle_reals(body, fields, limit, word)
    elif word is not None:
        fields["sampling"] = UNSAID.replace_trusted(max_tokens=limit)
        fields["extras"] = _LIMITS[word]
    return fields


_LIMITS = {
    name: extras_of({}, NAME, (f"max_tokens={name}",))
    for name in ("max_completion_tokens", "max_tokens")
}


def _settle_reals(body: Any, fields: dict[str, Any], limit: Any, word: str | None) -> None:
    values: dict[str, Any] = {}
    words: list[str] = []
    for name in ("temperature", "top_p"):
        if (value := getattr(body, name)) is not UNSET:
            values[name] = _real(value)
            words += [name] if value.__class__ is float and value.is_integer() else []
    if word is not None:
        values["max_tokens"] = limit
        words.append(f"max_tokens={word}")
    fields["sampling"] = Sampling(**values)
    if words:
        fields["extras"] = extras_of({}, NAME, words)


def _real(value: float) -> float:
    """The value as a float, which must hold it."""
    made = float(value)
    if int(made) != int(value):
        raise NotPlain
    return made


def _tools(raw: Raw) -> tuple[Any, ...]:
    tools = known_tools.read_text(bytes(raw))
    if tools is None:
        raise NotPlain
    for tool in tools:
        if getattr(tool, "extras", EMPTY) is not EMPTY:
            raise NotPlain  # they may be settings
    return tools


READABLE = Readable(
    System | Developer | User | Assistant | Result,
    {"model": str, "tools": Raw, "stream": bool, "max_completion_tokens": int, "max_tokens": int,
     "temperature": float | int, "top_p": float | int},
    read,
    _settle,
    decode_message,
    is_first=True,
)  # fmt: skip


# --- whole requests


def _body(request: Request, made: Made, target: Target) -> tuple[dict[str, Any], str]:
    items = made.items
    if made.instructions is not None:
        kind = System if made.role is Role.SYSTEM else Developer
        items = [kind(made.instructions), *items]
    wire: dict[str, Any] = {"model": request.model}
    if request.stream is not None:
        wire["stream"] = request.stream
    if (limit := request.sampling.max_tokens) is not None:
        wire[target.sampling.token_limit_fields[0]] = limit
    if request.sampling is not UNSAID:
        wire |= reals_of(request)
    wire["messages"] = items
    if made.tools:
        wire["tools"] = made.tools
    return wire, PATH


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    about = {} if description is None else {"description": description}
    return {"type": "function", "function": {"name": name, **about, "parameters": schema}}


WHOLE = Whole(_body, _tool, lambda target: openai_profiles(target).loose)
