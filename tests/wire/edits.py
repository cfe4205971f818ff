"""One change at a time to every field of every value, derived from the types.

`edits` takes a request or a response and yields all possible edits: each field set to another value
and cleared, each item removed, doubled, moved. New fields of the model are included automatically.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import UNSET

from dragoman import Image, Message, Text, ToolDefinition
from dragoman.errors import DragomanError
from dragoman.model.messages import Message as _Message
from dragoman.model.parts import CacheHint, Citation, Part
from dragoman.model.requests import Output, State, ThinkingConfig
from dragoman.model.tools import ToolChoice
from dragoman.model.usage import Usage
from dragoman.model.value import Value

UNSENT = frozenset({"extras", "origin", "wire_id", "finish_raw"})
"""Fields that say where a value came from and how it was spelled: not what it says."""
WORD = "edited"
"""What a text becomes."""
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


@dataclass(frozen=True)
class Edit:
    """A value with one change: its path, the value before (and its owner), and the new one."""

    path: str
    what: str
    value: Any
    old: Any
    new: Any
    owner: Any

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def edits(value: Value) -> Iterator[Edit]:
    """Every single change of a request or a response."""
    yield from _in_value(value, "", lambda made: made)


Rebuild = Callable[[Any], Any]


def _in_value(value: Value, path: str, rebuild: Rebuild) -> Iterator[Edit]:
    for field in msgspec.structs.fields(type(value)):
        name = field.name
        if name in UNSENT:
            continue
        where = f"{path}.{name}" if path else name
        old = getattr(value, name)

        def inner(new: Any, name: str = name) -> Any:
            return rebuild(value.replace(**{name: new}))

        for what, new in _others(old, field.type, name, type(value).__name__):
            yield from _made(where, what, old, new, inner, value)
        if isinstance(old, Value):
            yield from _in_value(old, where, inner)
        elif isinstance(old, tuple) and old and isinstance(old[0], Value):
            yield from _in_tuple(old, where, inner)


def _in_tuple(items: tuple[Any, ...], path: str, rebuild: Rebuild) -> Iterator[Edit]:
    def made(what: str, new: tuple[Any, ...]) -> Iterator[Edit]:
        return _made(path, what, items, new, rebuild)

    for index, item in enumerate(items):
        before, after = items[:index], items[index + 1 :]
        where = f"{path}[{index}]"

        def inner(new: Any, before: Any = before, after: Any = after) -> Any:
            return rebuild((*before, new, *after))

        def without(_: Any, before: Any = before, after: Any = after) -> Any:
            return rebuild((*before, *after))

        yield from _made(where, "removed", item, None, without)
        yield from _in_value(item, where, inner)
        for what, other in _newcomers(item):
            yield from made(f"with {what} at {index}", (*before, other, item, *after))
    for what, other in _newcomers(items[-1]):
        yield from made(f"with {what} at the end", (*items, other))
    for index in range(len(items) - 1):
        moved = list(items)
        moved[index : index + 2] = moved[index + 1], moved[index]
        yield from made(f"{index} and {index + 1} swapped", tuple(moved))


def _made(
    path: str, what: str, old: Any, new: Any, rebuild: Rebuild, owner: Any = None
) -> Iterator[Edit]:
    """The edit, if it is valid."""
    try:
        yield Edit(path, what, rebuild(new), old, new, owner)
    except DragomanError:
        return


def _newcomers(like: Any) -> Iterator[tuple[str, Any]]:
    """Possible neighbours of a value."""
    if isinstance(like, _Message):
        yield "a user's message", Message.user("a new message")
        yield "an assistant's message", Message.assistant("a new answer")
    elif isinstance(like, Part):
        yield "a text", Text("a new text")
        yield "a picture", Image(data=PICTURE, mime="image/png")
    elif isinstance(like, Citation):
        yield "a citation", like.replace(title=WORD)
    elif isinstance(like, Value) and "parameters" in like.__struct_fields__:
        yield (
            "a tool",
            ToolDefinition.create("new_tool", "A new tool.", _SCHEMA).replace(strict=None),
        )


_SCHEMA = {
    "type": "object",
    "properties": {WORD: {"type": "string"}},
    "required": [WORD],
    "additionalProperties": False,
}
_DATA = {"Image": PICTURE, "Audio": "UklGRiQAAABXQVZFZm10IBAAAAABAAEA"}
_MIMES = {"Audio": "audio/wav", "Video": "video/webm", "File": "text/plain"}
_MADE: dict[type, Any] = {
    Output: Output(format="schema", name="answer", schema=_SCHEMA),
    ThinkingConfig: ThinkingConfig(effort="low"),
    State: State(store=False),
    ToolChoice: ToolChoice("required"),
    CacheHint: CacheHint(),
    Usage: Usage(input=7, output=9),
}


def _others(old: Any, kind: Any, name: str, owner: str) -> Iterator[tuple[str, Any]]:
    """Other values of the same type, and None if that is allowed."""
    for what, new in _candidates(old, kind, name, owner):
        if type(new) is not type(old) or new != old:
            yield what, new


def _candidates(old: Any, kind: Any, name: str, owner: str) -> Iterator[tuple[str, Any]]:
    choices = get_args(kind) if get_origin(kind) in {Union, types.UnionType} else (kind,)
    if type(None) in choices:
        yield "cleared", None
    elif old == () or (isinstance(old, tuple) and old):
        yield "cleared", ()
    if isinstance(old, Mapping) and old.keys() == {"part"}:
        return  # ours: its content is the payload
    if isinstance(old, Mapping) and name in {
        "metadata",
        "payload",
        "input",
        "parameters",
        "schema",
    }:
        yield "set", {**old, WORD: WORD} if name != "schema" else _with_property(old)
        return
    for choice in choices:
        yield from _of_type(choice, old, name, owner)


def _with_property(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    given = properties if isinstance(properties, Mapping) else {}
    return {**schema, "properties": {**given, WORD: {"type": "string"}}}


def _of_type(kind: Any, old: Any, name: str, owner: str) -> Iterator[tuple[str, Any]]:  # noqa: C901, PLR0912 - a list of types
    origin = get_origin(kind)
    if origin is Literal:
        for word in get_args(kind):
            if "redacted" not in {word, old}:  # the data decides
                yield f"set to {word}", word
    elif origin is tuple and get_args(kind)[0] is str:
        yield "set", (WORD,)
        yield "with one more", (*(old or ()), WORD)
    elif kind is bool:
        yield "set to true", True
        yield "set to false", False
    elif kind is int:
        yield "set", 7 if old is None else old + 1
    elif kind is float:
        yield "set", 0.25
    elif kind is str:
        if name == "raw":
            yield "set", '{"edited":true}'
        elif name == "url":
            yield "set", "https://example.com/edited.png"
        elif name == "mime":
            yield "set", _MIMES.get(owner, "image/webp")
        elif name == "data":
            yield "set", _DATA.get(owner, "ZWRpdGVk")
        elif name == "content":
            yield "set", "an edited result"
        else:
            yield "set", WORD
    elif isinstance(kind, type) and issubclass(kind, Enum):
        for member in kind:
            yield f"set to {member.value}", member
    elif kind in _MADE:
        if old is None:
            yield "set", _MADE[kind]
    elif origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        if not isinstance(old, Mapping):
            yield "set", _SCHEMA if name in {"parameters", "schema"} else {WORD: WORD}
    elif kind is Any and isinstance(old, list):
        yield "set", [*old, {WORD: WORD}]
    elif kind is Any and old is not UNSET and old is not None:
        yield "set", {**old, WORD: WORD} if isinstance(old, Mapping) else {WORD: WORD}
