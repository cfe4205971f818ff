"""What is plain in this dialect: texts, calls and results, as the types of their JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from dragoman.model import parts as model
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import make_call, make_result
from dragoman.wire.anthropic.dialect import ORIGIN
from dragoman.wire.anthropic.request import PATH, decode_message
from dragoman.wire.anthropic.settings import SETTINGS
from dragoman.wire.anthropic.tools import anthropic_profiles, known_tools
from dragoman.wire.envelope import PREFIX
from dragoman.wire.plain.reading import Ids, Readable, blank, copy, put
from dragoman.wire.plain.whole import Made, Whole, reals_of
from dragoman.wire.plain.writing import NotPlain, Written
from dragoman.wire.shown_calls import MARK
from dragoman.wire.target import Target


class Hint(Struct, forbid_unknown_fields=True, gc=False):
    """A cache hint."""

    type: Literal["ephemeral"]
    ttl: str | UnsetType = UNSET


class Text(Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    """A text among other blocks."""

    text: str
    cache_control: Hint | UnsetType = UNSET


class Thinking(Struct, tag_field="type", tag="thinking", forbid_unknown_fields=True, gc=False):
    """Signed thinking."""

    thinking: str
    signature: str


class ToolUse(Struct, tag_field="type", tag="tool_use", forbid_unknown_fields=True, gc=False):
    """A call."""

    id: str
    name: str
    input: dict[str, Any]
    cache_control: Hint | UnsetType = UNSET


class ToolResult(Struct, tag_field="type", tag="tool_result", forbid_unknown_fields=True, gc=False):
    """A result that is a text."""

    tool_use_id: str
    content: str
    is_error: bool | UnsetType = UNSET
    cache_control: Hint | UnsetType = UNSET


class User(Struct, tag_field="role", tag="user", forbid_unknown_fields=True, gc=False):
    """A user's message, or the results of a round."""

    content: str | list[Text | ToolResult]


class Assistant(Struct, tag_field="role", tag="assistant", forbid_unknown_fields=True, gc=False):
    """A model's message."""

    content: str | list[Text | Thinking | ToolUse]


WRITTEN = Written(
    {"User": User, "Answer": Assistant, "Block": Text, "Use": ToolUse, "Result": ToolResult},
    user="User(t)",
    answer="Answer(t)",
    text="Block(t)",
    call="Use(i, x, a)",
    called="Answer(b)",
    result="Result(i, t)",
    results="User(results)",
)


# --- reading

_USER, _TOOL, _ANSWER = (blank(role, ORIGIN) for role in (Role.USER, Role.TOOL, Role.ASSISTANT))
_HINT = model.CacheHint()


def read(turns: Iterable[Any]) -> tuple[list[Message], Ids]:
    """The messages, and the ids of their calls."""
    out: list[Message] = []
    ids: Ids = []
    for turn in turns:
        content = turn.content
        is_answer = type(turn) is Assistant
        made = copy(_ANSWER if is_answer else _USER)
        if type(content) is str:
            put(made, "parts", (model.Text(content),))
        else:
            parts: list[Any] = []
            others = is_answer
            for block in content:
                kind = type(block)
                if kind is Text:
                    others = True
                    hint = block.cache_control
                    parts.append(
                        model.Text(block.text)
                        if hint is UNSET
                        else model.Text(block.text, cache=_hint(hint))
                    )
                elif kind is ToolUse:
                    ids.append(block.id)
                    parts.append(
                        make_call(
                            block.id,
                            block.name,
                            None,
                            block.input,
                            cache=_hint(block.cache_control),
                        )
                    )
                elif kind is ToolResult:
                    parts.append(_result(block))
                else:
                    parts.append(_thinking(block))
            if not others and parts:
                made = copy(_TOOL)
            put(made, "parts", tuple(parts))
        out.append(made)
    return out, ids


def _hint(wire: Any) -> model.CacheHint | None:
    if wire is UNSET:
        return None
    return _HINT if wire.ttl is UNSET else model.CacheHint(wire.ttl)


def _result(block: ToolResult) -> Any:
    if not block.tool_use_id:
        raise NotPlain  # it is matched by its place
    error = None if block.is_error is UNSET else block.is_error
    hint = _hint(block.cache_control)
    return make_result(block.tool_use_id, block.content, is_error=error, cache=hint)


def _thinking(block: Thinking) -> model.Thinking:
    if block.signature.startswith(PREFIX) or MARK in block.signature:
        raise NotPlain  # it holds another provider's
    return model.Thinking(block.thinking, signature=block.signature, origin=ORIGIN)


def _settle(body: Any) -> dict[str, Any]:
    given = {name: value for name in _NAMES if (value := getattr(body, name)) is not UNSET}
    fields = SETTINGS.read(given)
    if body.system is not UNSET:
        fields["system"] = _system(body.system)
    if body.tools is not UNSET:
        tools = known_tools.read_text(bytes(body.tools))
        if tools is None:
            raise NotPlain
        for tool in tools:
            if getattr(tool, "extras", EMPTY) is not EMPTY:
                raise NotPlain  # they may be settings
        fields["tools"] = tools
    return fields


_NAMES = ("model", "max_tokens", "stream", "temperature", "top_p")


def _system(wire: str | list[Text]) -> tuple[model.Text, ...]:
    if isinstance(wire, str):
        return (model.Text(wire),)
    if not wire:
        raise NotPlain
    return tuple([model.Text(each.text, cache=_hint(each.cache_control)) for each in wire])


READABLE = Readable(
    User | Assistant,
    {"system": str | list[Text], "tools": Raw, "model": str, "max_tokens": int, "stream": bool,
     "temperature": float | int, "top_p": float | int},
    read,
    _settle,
    lambda wire, reading, _: decode_message(wire, reading),
)  # fmt: skip


# --- whole requests


def _body(request: Request, made: Made, _target: Target) -> tuple[dict[str, Any], str]:
    wire: dict[str, Any] = {"model": request.model}
    if request.stream is not None:
        wire["stream"] = request.stream
    if request.sampling.max_tokens is None:
        raise NotPlain  # it is required
    wire["max_tokens"] = request.sampling.max_tokens
    wire |= reals_of(request)
    if made.tools:
        wire["tools"] = made.tools
    if made.instructions is not None:
        wire["system"] = made.instructions
    wire["messages"] = made.items
    return wire, PATH


def _tool(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    about = {} if description is None else {"description": description}
    return {"name": name, **about, "input_schema": schema}


WHOLE = Whole(_body, _tool, lambda target: anthropic_profiles(target).loose)
