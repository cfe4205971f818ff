"""Splits an encoded body into units that belong to at most one message each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["call", "result", "said"]
LABELS = frozenset({
    "role", "type", "status", "detail", "media_type", "mime_type", "mimeType", "format", "phase",
})  # fmt: skip
"""Fields whose values are keywords of the dialect."""
NAMES = frozenset({
    "id", "name", "call_id", "tool_call_id", "tool_use_id", "tool_name", "approval_request_id",
})  # fmt: skip
"""Fields that identify calls and tools; a call and its result share them."""
_CALLS = frozenset({"tool_use", "function_call", "functionCall", "custom_tool_call", "tool_calls"})
_RESULTS = frozenset({"tool_result", "functionResponse", "function_response"})
_ANSWERS = frozenset({"assistant", "model"})
_BY_ROLE: Mapping[str, Kind] = {"tool": "result", "function": "result"}


class Unit(NamedTuple):
    """A piece of a body: an item, or an entry of one of its lists."""

    item: str
    """The path of the item that contains it."""
    path: str
    value: Any
    kind: Kind
    is_answer: bool | None = None
    """Whether it is model output, by the item's role; None if the item has no role."""


def units_of(body: Mapping[str, Any], messages: str, system: str | None) -> list[Unit]:
    """Returns the units of the system prompt and of the messages, in order."""
    found: list[Unit] = []
    if system is not None and system in body and system != messages:
        found += _of_system(system, body[system])
    listed = body.get(messages)
    if not isinstance(listed, list):
        if listed is not None:
            found.append(Unit(messages, messages, listed, "said"))
        return found
    for number, item in enumerate(listed):
        found += _of_item(f"{messages}[{number}]", item)
    return found


def _of_system(path: str, value: Any) -> Iterator[Unit]:
    if isinstance(value, Mapping):
        lists = [(key, each) for key, each in value.items() if isinstance(each, list)]
        for key, each in lists:
            yield from _of_system(f"{path}.{key}", each)
        if not lists:
            yield Unit(path, path, value, "said")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            place = f"{path}[{number}]"
            yield Unit(place, place, each, "said")
    else:
        yield Unit(path, path, value, "said")


def _of_item(path: str, item: Any) -> Iterator[Unit]:
    """Yields the units of an item: one per list entry, and one per other field."""
    if not isinstance(item, Mapping):
        yield Unit(path, path, item, "said")
        return
    outer, any_found = _kind_of(item), False
    role = item.get("role")
    is_answer = role in _ANSWERS if isinstance(role, str) else None
    for key, value in item.items():
        if key in LABELS or key in NAMES:
            continue
        any_found = True
        if isinstance(value, list) and value and outer != "result":
            for number, each in enumerate(value):
                kind = _kind_of(each) if key not in _CALLS else "call"
                yield Unit(path, f"{path}.{key}[{number}]", each, kind, is_answer)
        else:
            kind = "call" if key in _CALLS and value else outer
            # The whole item, because the call's id is beside its result.
            whole = item if outer != "said" else {key: value}
            yield Unit(path, f"{path}.{key}", whole, kind, is_answer)
    if not any_found:
        yield Unit(path, path, item, outer, is_answer)


def _kind_of(value: Any) -> Kind:
    if not isinstance(value, Mapping):
        return "said"
    word = value.get("type")
    word = word if isinstance(word, str) else ""
    if word in _RESULTS or word.endswith("_output") or not _RESULTS.isdisjoint(value):
        return "result"
    if word in _CALLS or word.endswith("_call") or not _CALLS.isdisjoint(value.keys() - {
        "tool_calls", "function_call"}):  # fmt: skip
        return "call"
    role = value.get("role")
    return _BY_ROLE.get(role, "said") if isinstance(role, str) else "said"
