"""Decodes malformed messages, contents and tools.

Clients, gateways and scripts send unknown roles, a number or an object as content, or a bare text
among the messages. Such a message is rewritten into the closest one that its dialect's decoder
accepts. The original is kept as guesses in the message's extras (`overlay.with_guesses`): in its
own dialect it is sent back as it came unless edited; any other dialect is sent the readable form,
with a `Loss`.

This code only runs for messages that the normal decoder can't handle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from dragoman.model.jsontext import dumps
from dragoman.model.messages import Message
from dragoman.model.parts import Part, Text
from dragoman.model.tools import ServerTool
from dragoman.wire.overlay import with_guesses

_Kept = TypeVar("_Kept", bound=Message | Part)
_ODD = "$odd"  # no wire format has a tool of that name

# Other names of the roles that every dialect has.
_ALIASES = {
    "human": "user",
    "model": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "developer": "system",
}


class Form(NamedTuple):
    """What a dialect's decoder accepts as a message."""

    dialect: str
    roles: Mapping[str, str]
    """The dialect's roles, by their common names."""
    content: str = "content"
    """The content field."""
    kinds: tuple[type, ...] = (str, list)
    """The types that the content may have."""
    said: Callable[[str], Any] = str
    """Converts a text to the dialect's content."""


def readable_message(
    wire: Any, form: Form, speaker: str = "user"
) -> tuple[dict[str, Any], list[Any]]:
    """A message that the decoder accepts in place of this one, and the guesses to undo it."""
    if not isinstance(wire, dict):
        made = {"role": form.roles[speaker], form.content: form.said(plain_text(wire))}
        return made, [[[], made, wire]]
    made, guesses = dict(wire), list[Any]()
    if not _is_known(made.get("role"), form):
        _put(made, "role", _likely_role(made, form), guesses)
    _read_content(made, form, guesses)
    return made, guesses


def readable_answer(wire: dict[str, Any], form: Form) -> tuple[dict[str, Any], list[Any]]:
    """Like `readable_message`, for the message of a response, where the role is known."""
    made, guesses = dict(wire), list[Any]()
    _read_content(made, form, guesses)
    return made, guesses


def _read_content(made: dict[str, Any], form: Form, guesses: list[Any]) -> None:
    content = made.get(form.content)
    if not isinstance(content, form.kinds):
        _put(made, form.content, _likely_content(content, form), guesses)


def _put(made: dict[str, Any], key: str, ours: Any, guesses: list[Any]) -> None:
    guesses.append([[key], ours, made[key]] if key in made else [[key], ours])
    made[key] = ours


def _is_known(role: Any, form: Form) -> bool:
    return isinstance(role, str) and role in form.roles.values()


def _likely_role(wire: Mapping[str, Any], form: Form) -> str:
    """The most likely role: by its name, otherwise by fields that only one role has."""
    word = wire.get("role")
    word = word.strip().lower() if isinstance(word, str) else ""
    if not _is_known(word, form):
        word = _ALIASES.get(word, "")
        word = form.roles.get(word, word)
    if _is_known(word, form):
        return word
    if wire.get("tool_calls") or wire.get("function_call"):
        word = "assistant"
    elif wire.get("tool_call_id") and "tool" in form.roles:
        word = "tool"
    return form.roles.get(word, form.roles["user"])


def _likely_content(value: Any, form: Form) -> Any:
    if isinstance(value, dict) and isinstance(value.get("type"), str):  # a single part
        if value.keys() == {"type", "text"} and isinstance(value["text"], str):
            return form.said(value["text"])
        if list in form.kinds:
            return [value]
    return form.said(plain_text(value))


def plain_text(value: Any) -> str:
    """A JSON value as text: strings as they are, empty values as "", others as JSON."""
    if isinstance(value, str):
        return value
    if value is None or value in ([], {}):
        return ""
    return dumps(value).decode("utf-8")


def with_original(value: _Kept, dialect: str, values: Iterable[Any]) -> _Kept:
    """A message or part with the guesses that restore its original form."""
    return replace(value, extras=with_guesses(value.extras, dialect, values))


def bare_text(text: str, part: Any, dialect: str) -> Text:
    """A part for a bare text among the parts of a content; `part` is what we encode for it."""
    return with_original(Text(text), dialect, [[[], part, text]])


# --- tools


def odd_tool(wire: Any, dialect: str) -> ServerTool:
    """Wrap a malformed tool, to be sent back whole to its own dialect, like a provider tool."""
    return ServerTool(_ODD, dialect, {_ODD: wire})


def is_odd_tool(tool: ServerTool) -> bool:
    """Whether a tool was made by `odd_tool`."""
    return tool.name == _ODD and _ODD in tool.payload


def payload_of(tool: ServerTool) -> Any:
    """The payload of a provider tool, or the original of a malformed one."""
    if is_odd_tool(tool):
        return tool.payload[_ODD]
    if not tool.name or tool.payload.get("type") == tool.name:
        return tool.payload
    return {**tool.payload, "type": tool.name}  # it was renamed
