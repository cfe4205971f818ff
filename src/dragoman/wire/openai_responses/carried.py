"""Cache hints in Anthropic's form, on items and parts: routers and LiteLLM accept them there."""

from __future__ import annotations

from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.tools import ToolResult
from dragoman.wire.carried import (
    CACHE,
    Carried,
    hint_of,
    with_changed_content,
    with_fields,
    with_hint,
    with_own_hint,
)
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.tables import ITEM
from dragoman.wire.overlay import fields_of


def _read(message: Message) -> Carried | None:
    if message.extras is EMPTY and not any(map(_may_have, message.parts)):
        return None  # most messages
    parts = [with_changed_content(part, _with_hint) for part in message.parts]
    extras = message.extras
    fields = fields_of(extras, NAME)
    hint = hint_of(fields.get(CACHE))
    if hint is not None and with_hint(parts, hint):
        left = {name: value for name, value in fields.items() if name != CACHE}
        extras = with_fields(extras, NAME, left)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return None
    changed = message.replace_unchecked(parts=tuple(parts), extras=extras)
    return Carried(changed, tuple(range(len(parts))))


def _with_hint(part: Any) -> Any:
    """The part with its own hint, or that of the item that begins with it."""
    part = with_own_hint(part, NAME)
    fields = fields_of(part.extras, NAME)
    item = fields.get(ITEM)
    if not isinstance(item, dict) or part.cache is not None:
        return part
    hint = hint_of(item.get(CACHE))
    if hint is None:
        return part
    left = {name: value for name, value in item.items() if name != CACHE}
    extras = with_fields(part.extras, NAME, {**fields, ITEM: left})
    return part.replace_unchecked(cache=hint, extras=extras)


def _may_have(part: Part) -> bool:
    return part.extras is not EMPTY or (type(part) is ToolResult and type(part.content) is not str)


CARRIED = _read
