"""Classifies message input, and delegates what the model can't read itself.

Texts, parts, messages and the canonical dict shapes are read by the model. Dicts of other dialects
and objects of other libraries are read by `dragoman.interop.reader`. This layer must not import
it, so the reader is looked up by name in the top-level package and loaded on first use.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dragoman.errors import InvalidInputError
from dragoman.model import shapes
from dragoman.model.jsontext import JsonText, convert, loads
from dragoman.model.parts import Part, Refusal, ServerToolCall, Thinking, own_extras
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.value import unchecked

if TYPE_CHECKING:
    from dragoman.model.collection import Messages
    from dragoman.model.messages import Message

    M = TypeVar("M", bound=Message)

_ROLES = frozenset(role.value for role in Role)
_PLAIN = 2  # keys of a plain message: role and content
_DOCUMENT = frozenset({"dragoman", "value"})
_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})
_OF_MODELS = (ToolCall, Thinking, Refusal, ServerToolCall)


class InputReader(Protocol):
    """Reads input in foreign formats: other dialects' dicts and other libraries' objects."""

    def message(self, value: object) -> Message:
        """Reads a single message; raises if the value is not exactly one message."""
        ...

    def messages(self, value: object) -> Messages:
        """Reads a conversation."""
        ...

    def from_json(self, raw: JsonText) -> Messages:
        """Reads a conversation from JSON that is not a dragoman document."""
        ...

    def is_message(self, value: Mapping[str, Any]) -> bool:
        """Whether a dict describes a message, in any dialect."""
        ...

    def dialect_of_part(self, value: Mapping[str, Any]) -> str | None:
        """The dialect of a content part; `None` if it may be canonical."""
        ...


def reader() -> InputReader:
    """The input reader, looked up in the top-level package."""
    found: InputReader = import_module("dragoman").INPUT_READER
    return found


def from_json(raw: JsonText, problem: str) -> Messages:
    """Reads JSON that is not a document; raises `problem` if it is not a conversation either."""
    wire = None
    with suppress(InvalidInputError):
        wire = loads(raw)
    is_other = isinstance(wire, list) or (isinstance(wire, dict) and _DOCUMENT.isdisjoint(wire))
    if not is_other:
        raise InvalidInputError(problem)
    return reader().from_json(raw)


def is_plain(value: Any) -> bool:
    """Whether this is a dict of a role and a text, which all dialects read the same way."""
    return (
        type(value) is dict
        and len(value) == _PLAIN
        and type(value.get("content")) is str
        and type(role := value.get("role")) is str
        and role in _ROLES
        and role != "tool"
    )


def is_foreign(data: Mapping[str, Any]) -> bool:
    """Whether a message dict may be in another dialect rather than in a canonical shape."""
    if "type" in data:
        return True
    if "parts" in data:
        parts = data["parts"]
        first = parts[0] if isinstance(parts, (list, tuple)) and parts else None
        return isinstance(first, Mapping) and "type" not in first
    content, calls = data.get("content"), data.get("tool_calls")
    blocks = content if isinstance(content, (list, tuple)) else ()
    called = calls if isinstance(calls, (list, tuple)) else ()
    return any(map(_is_foreign_part, blocks)) or any(map(_is_foreign_call, called))


def _is_foreign_part(part: Any) -> bool:
    if not isinstance(part, Mapping):
        return not isinstance(part, (str, Part))
    kind = part.get("type", "text")
    return not isinstance(kind, str) or kind not in _PARTS


def _is_foreign_call(call: Any) -> bool:
    return not isinstance(call, (Mapping, ToolCall, str))


def own_message(data: Mapping[str, Any], kind: type[M]) -> M:
    """Reads a message from a dict in a canonical shape; one without a role is none."""
    if data.get("role") is None:
        msg = "a message dict must have a role: system, developer, user, assistant or tool"
        raise InvalidInputError(msg)
    if "parts" not in data:
        return unchecked(kind)(**shapes.read(data))
    known = {key: data[key] for key in data if key in kind.__struct_fields__}
    message: M = convert({**known, "role": Role.parse(data["role"])}, kind)
    unknown = {key: data[key] for key in data if key not in known}
    if not unknown:
        return message
    own = {**own_extras(message.extras), **unknown}
    return message.replace_unchecked(extras={**message.extras, "canonical": own})


def role_of(parts: tuple[Part, ...]) -> Role:
    """The default role for parts: tool or assistant if only they can say this, otherwise user."""
    if parts and all(isinstance(part, ToolResult) for part in parts):
        return Role.TOOL
    is_models = any(isinstance(part, _OF_MODELS) for part in parts)
    return Role.ASSISTANT if is_models else Role.USER
