"""Detects the dialect of message dicts, by what only that dialect writes.

Our own shapes (`Message.from_dict`) are variations of OpenAI Chat's: flat tool calls, camelCase,
texts among the content. A dict with one of these is ours; `{"role": "user", "content": "Hi"}` could
be of any dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.model.content import is_message as is_own_message
from dragoman.model.parts import Part
from dragoman.model.reasoning_fields import has_own_details
from dragoman.wire.detection import Evidence, evidence
from dragoman.wire.documents import has_typed_parts

OWN = "own"
"""Marks one of the shapes of `Message.from_dict`."""

_COMMON_ROLES = frozenset({"system", "developer", "user", "assistant"})  # in several dialects

# Message fields and content types that only our own shapes have.
_CAMEL = frozenset({"toolCalls", "toolCallId", "toolName", "functionCall", "isError"})
_RESULT = frozenset({"tool_name", "is_error", "data"})
_PARTS = frozenset({"tool_call", "server_tool_call", "server_tool_result", "opaque", "audio",
                    "video", "custom"})  # fmt: skip
_TEXT = 2  # a type and a text


def dialects_of(dicts: Sequence[dict[str, Any]]) -> list[str]:
    """The dialect of each of these dicts, or `OWN`.

    An ambiguous dict gets the dialect of the dicts before it, or after it.
    """
    known = evidence()
    found = [dialect_of(item, known) for item in dicts]
    nearby = next((name for name in found if _is_nearby(name, known)), None)
    named: list[str] = []
    for name, item in zip(found, dicts, strict=True):
        nearby = name if _is_nearby(name, known) else nearby
        alone = known.like_ours or OWN if _has_marks(item) else OWN
        named.append(name or (nearby if nearby and _fits(item, nearby, known) else alone))
    return named


def _is_nearby(name: str | None, known: Evidence) -> bool:
    """Whether an ambiguous dict, which has `content`, can have the same dialect as this one."""
    return name is not None and name != OWN and known.form(name).content_field == "content"


def _fits(item: Mapping[str, Any], name: str, known: Evidence) -> bool:
    """Whether an ambiguous dict can be of this dialect."""
    form = known.form(name)
    if "type" in item:  # an item of an unknown kind
        return bool(form.item_types)
    role = item.get("role")
    return not isinstance(role, str) or role in form.roles


def _has_marks(item: Mapping[str, Any]) -> bool:
    """Whether a text in the content has wire fields, such as `cache_control`."""
    texts = (part for part in _blocks(item) if part.get("type") == "text")
    return any(len(part) > _TEXT for part in texts)


def dialect_of(item: dict[str, Any], known: Evidence | None = None) -> str | None:
    """The dialect of a dict, or `OWN`; None if it is ambiguous."""
    known = known or evidence()
    if "parts" in item and not _has_foreign_parts(item, known):
        return OWN
    name = known.dialect_of_item(item)
    if name is not None:
        return name
    if isinstance(item.get("type"), str):
        return None
    if _has_own_content(item, known) or _has_own_fields(item):
        return OWN
    return _dialect_of_message(item, known)


def _dialect_of_message(item: dict[str, Any], known: Evidence) -> str | None:
    """Like `dialect_of`, for a dict with a role and content."""
    owners = [name for part in _blocks(item) if (name := known.dialect_of_part(part)) is not None]
    others = [name for name in owners if name != known.like_ours]
    if others:
        return others[0]
    role = item.get("role")
    if not isinstance(role, str):
        return OWN
    name = known.dialect_of_message(item, role)
    if name is not None or known.like_ours is None:
        return name
    if role not in known.form(known.like_ours).roles:
        return OWN  # an alias of a role
    return None if role in _COMMON_ROLES and not owners else known.like_ours


def _blocks(item: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = item.get("content")
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict)]


def _has_foreign_parts(item: Mapping[str, Any], known: Evidence) -> bool:
    parts = item["parts"]
    if not isinstance(parts, list) or has_typed_parts(item):
        return False
    return any(isinstance(part, dict) and _is_told_by_a_field(part, known) for part in parts)


def _is_told_by_a_field(part: Mapping[str, Any], known: Evidence) -> bool:
    """Whether a part is recognised without a type, as Gemini's and pydantic-ai's are."""
    return "part_kind" in part or known.dialect_of_untyped_part(part) is not None


def _has_own_content(item: Mapping[str, Any], known: Evidence) -> bool:
    content = item.get("content")
    if not isinstance(content, list):
        return isinstance(content, (Part, dict))
    return any(_is_own_part(part, known) for part in content)


def _is_own_part(part: Any, known: Evidence) -> bool:
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        return True  # a text, a part, or a dict recognised by its field
    field = known.shared_part_types.get(kind)
    return kind in _PARTS or (field is not None and field not in part)


def _has_own_fields(item: Mapping[str, Any]) -> bool:
    calls = item.get("tool_calls")
    if isinstance(calls, list) and any(map(_is_own_call, calls)):
        return True
    if "tool_call_id" in item and (not _RESULT.isdisjoint(item) or item.get("role") == "function"):
        return True
    if has_own_details(item.get("reasoning_details")):
        return True
    return "dialect_extras" in item or not _CAMEL.isdisjoint(item)


def _is_own_call(call: Any) -> bool:
    """Whether a call is flat, has a signature as in our shapes, or has no name."""
    if not isinstance(call, dict) or "name" in call or "signature" in call:
        return True
    return call.keys() <= {"id", "type"} or call.get("function") == {}


# --- bare content


def is_part(wire: Mapping[str, Any]) -> bool:
    """Whether a dict without a type is recognised by its fields as a part of a message."""
    known = evidence()
    like_ours = known.form(known.like_ours).part_types if known.like_ours else frozenset()
    return _is_told_by_a_field(wire, known) or "text" in wire or not like_ours.isdisjoint(wire)


def message_around(content: list[Any]) -> dict[str, Any] | None:
    """The message dict around bare blocks or parts of a dialect; None if they are our own."""
    blocks = [part for part in content if isinstance(part, dict)]
    if not blocks or len(blocks) < len(content):
        return None
    known = evidence()
    if any(_is_foreign_block(part, known) for part in blocks):
        return {"content": blocks}
    names = {known.dialect_of_untyped_part(part) for part in blocks if "type" not in part}
    is_text = all(part.keys() == {"text"} for part in blocks)
    if is_text or len(names) != 1 or any("type" in part for part in blocks):
        return None
    name = names.pop()
    return None if name is None else {known.form(name).content_field: blocks}


def _is_foreign_block(part: dict[str, Any], known: Evidence) -> bool:
    name = known.dialect_of_part(part)
    return name not in (None, known.like_ours) and not _is_own_part(part, known)


def is_message(wire: Mapping[str, Any]) -> bool:
    """Whether a dict describes a message, or an item that represents one."""
    return is_own_message(wire) or evidence().dialect_of_item(wire) is not None


def dialect_of_part(part: Mapping[str, Any]) -> str | None:
    """The dialect of a bare part; None if it may be our own."""
    known = evidence()
    if "type" in part and _is_own_part(part, known):
        return None
    return (
        known.dialect_of_part(part)
        or known.dialect_of_untyped_part(part)
        or known.dialect_of_item(part)
        or known.dialect_of_item({"content": [part]})
    )
