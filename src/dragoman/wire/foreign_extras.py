"""Reports fields that only another dialect has, which are left out, as losses (I14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict, FrozenList
from dragoman.model.jsontext import loads
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import guesses_in, has_no_content, kept_of_others

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
# Spelling details: another dialect spells these its own way, and nothing is lost.
_WORDS = frozenset({"type", "index", "status", "role", "id", "call_id", "thought",
                    "thoughtSignature", "object", "created"})  # fmt: skip
_SPELLING = frozenset({"item", "format"})
_GROUPED = {
    "systemInstruction": {"role", "parts"},
    "function": {"index"},  # Ollama's number of a call
}
"""Objects that are spelling if they hold nothing else."""
_DEFAULTS: dict[str, Any] = {
    "tool_choice": "auto",
    "truncation": "disabled",
    "background": False,
    "caller": {"type": "direct"},
    "include": ["reasoning.encrypted_content"],  # sealed state is returned anyway
}
"""Values that are the default anyway: leaving them out loses nothing."""
_GROUP = "namespace"
_NOTE = ":"  # prefix of private notes of the bridges to other libraries
_FACTS = " facts"  # suffix of a library's metadata about a message
_KINDS: dict[type, type] = {
    int: float, FrozenDict: dict, FrozenList: list, tuple: list,
}  # fmt: skip


def foreign_request_losses(request: Request, dialect: str) -> list[Loss]:
    """Report a request's fields that only other dialects have, except those in messages."""
    losses: list[Loss] = []
    if request.extras is not EMPTY and not has_no_content(request.extras):
        losses += foreign_losses(request.extras, dialect, "extras")
    for index, tool in enumerate(request.tools):
        extras = getattr(tool, "extras", EMPTY)
        if extras is not EMPTY and not has_no_content(extras):
            losses += _at(f"tools[{index}]", extras, dialect)
    if request.output is not None:
        losses += foreign_losses(request.output.extras, dialect, "output.extras")
    if request.thinking is not None:
        losses += foreign_losses(request.thinking.extras, dialect, "thinking.extras")
    if request.tool_choice is not None:
        losses += _at("tool_choice", request.tool_choice.extras, dialect)
    for index, part in enumerate(request.system):
        losses += _at(f"system[{index}]", part.extras, dialect)
        origin = part.origin
        if part.signature is not None and origin is not None and origin.dialect != dialect:
            reason = f"only {origin.dialect} uses this signature"
            losses.append(Loss(f"system[{index}].signature", reason))
    return losses


def foreign_message_losses(
    messages: tuple[Message, ...], extended: Iterable[int], dialect: str
) -> list[Loss]:
    """Like `foreign_request_losses`, for those messages and their parts that have extras."""
    losses: list[Loss] = []
    harmless: set[int] = {id(EMPTY)}  # many parts share the same few extras
    for index in dict.fromkeys(extended):
        message = messages[index]
        path = f"messages[{index}]"
        if id(message.extras) not in harmless:
            losses += _foreign(message, path, dialect, harmless)
        for place, part in enumerate(message.parts):
            if id(part.extras) not in harmless:
                losses += _foreign(part, f"{path}.parts[{place}]", dialect, harmless)
            if type(part) is ToolResult and not isinstance(part.content, str):
                for number, inner in enumerate(part.content):
                    where = f"{path}.parts[{place}].content[{number}]"
                    losses += _foreign(inner, where, dialect, harmless)
    return losses


def _foreign(owner: Message | Part, path: str, dialect: str, harmless: set[int]) -> list[Loss]:
    """The losses for the extras of a message or part; adds those without any to `harmless`."""
    extras = owner.extras
    found = [] if not extras or has_no_content(extras) else list(foreign_fields(extras, dialect))
    if not found:
        harmless.add(id(extras))
    return [
        Loss(f"{path}.extras", f"only {source} has this field")
        for source, name in found
        if name != _GROUP or not _is_named_by_itself(owner, source)
    ]


def _is_named_by_itself(part: Any, source: str) -> bool:
    """Whether a call's namespace equals its tool's name, as for a tool found by a search."""
    return type(part) is ToolCall and part.extras[source].get(_GROUP) == part.name


def _at(path: str, extras: Mapping[str, Any], dialect: str) -> Iterator[Loss]:
    """The losses for extras at this path."""
    if extras is not EMPTY:
        for source, _ in foreign_fields(extras, dialect):
            yield Loss(f"{path}.extras", f"only {source} has this field")


def foreign_losses(extras: Mapping[str, Any], dialect: str, path: str) -> Iterator[Loss]:
    """The losses for extras at this path, one for each field of another dialect."""
    if extras is EMPTY or not extras or has_no_content(extras):
        return
    for source, name in foreign_fields(extras, dialect):
        where = f"{path}.{name}" if _NAME.fullmatch(name) else path
        yield Loss(where, f"only {source} has this field")


def foreign_fields(extras: Mapping[str, Any], dialect: str) -> Iterator[tuple[str, str]]:
    """The meaningful fields of other dialects in extras, as pairs of dialect and field name."""
    for source, fields, spelling in kept_of_others(extras, dialect):
        if source.endswith(_FACTS):
            continue
        for name, value in fields.items():
            is_note = name.startswith(_NOTE)
            if not (is_note or _is_spelling(name, value)) and has_content(value):
                yield source, name
        if spelling:
            yield from ((source, name) for name in _retyped(guesses_in(spelling)))
            yield from ((source, name) for name in _meaningful_notes(spelling))


def has_content(value: Any) -> bool:
    """Whether a value has content: null, empty values and objects of these don't."""
    if isinstance(value, dict):
        return any(map(has_content, value.values()))
    return value is not None and value not in ("", []) and value != ()


def _meaningful_notes(notes: Mapping[str, Any]) -> Iterator[str]:
    """Meaningful fields among a dialect's spelling notes, by name.

    These are a media type, and fields that came among the tools (Gemini's `mcpServers`).
    """
    if notes.get("mime"):
        yield "mime"
    layout = notes.get("tools")
    for entry in layout if isinstance(layout, list) else ():
        rest = entry.get("rest") if isinstance(entry, dict) else None
        if isinstance(rest, dict):
            yield from (name for name, value in rest.items() if has_content(value))


def _is_spelling(name: str, value: Any) -> bool:
    if name in _WORDS:
        return not isinstance(value, (dict, list))
    if name in _GROUPED:
        return isinstance(value, dict) and value.keys() <= _GROUPED[name]
    if name in _DEFAULTS and value == _DEFAULTS[name]:
        return True
    return name in _SPELLING


def _retyped(guesses: Iterable[Sequence[Any]]) -> Iterator[str]:
    """The names of fields that had a type on the wire that the model can't hold.

    A value of the same type differs only in spelling.
    """
    for path, ours, *theirs in guesses:
        name = path[0] if path else ""
        if not isinstance(name, str):
            continue
        if name == "role":  # a missing role was guessed
            is_same = bool(theirs) and str(theirs[0]).lower() == ours
        else:
            is_same = not theirs or _is_same(ours, theirs[0])
        if not is_same:
            yield name


def _is_same(ours: Any, theirs: Any) -> bool:
    """Whether two values differ only in spelling, judged by their types."""
    if theirs is None:
        return True
    kinds = [_KINDS.get(type(value), type(value)) for value in (ours, theirs)]
    if kinds[0] is kinds[1]:
        return True
    return kinds[1] is str and ours == _parsed(theirs)


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except InvalidInputError:
        return text
