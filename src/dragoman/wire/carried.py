"""What a dialect's clients carry for another one, in fields that proxies and routers have added.

Their names became usual (Chat's `thinking_blocks`, `reasoning_details`, message-level
`cache_control`), so the content of a request may be in another dialect's terms. A dialect that has
such fields describes them (`Description.carried`, a module with `CARRIED`). In their own dialect
they are sent back as they came; for other dialects they are moved to where these have them
(`fitting.carried`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.messages import Message
from dragoman.model.parts import CacheHint, Part, Thinking
from dragoman.model.tools import ToolResult
from dragoman.wire.dialect import descriptions
from dragoman.wire.overlay import current, fields_of

CACHE = "cache_control"


class Carried(NamedTuple):
    """A message with what its dialect's fields carried, in its parts."""

    message: Message
    places: tuple[int | None, ...]
    """Where each of its parts was before; None if it was in a field of the message."""


Reader = Callable[[Message], Carried | None]
"""Moves what a dialect's fields carry to the parts of a message; None if there is nothing."""


def readers_for(dialect: str) -> list[Reader]:
    """The readers of all dialects but this one."""
    modules = [each.carried for each in descriptions() if each.carried and each.name != dialect]
    return [import_module(module).CARRIED for module in modules]


def hint_of(value: Any) -> CacheHint | None:
    """The cache hint in a `cache_control`; None if it is not one."""
    if not isinstance(value, Mapping) or value.get("type") != "ephemeral":
        return None
    ttl = value.get("ttl")
    is_timed = isinstance(ttl, str)
    return CacheHint(ttl if is_timed else None) if len(value) == 1 + is_timed else None


def with_hint(parts: list[Any], hint: CacheHint) -> bool:
    """Give a message's hint to its last part that can have one; False if none can."""
    for place in reversed(range(len(parts))):
        part = parts[place]
        if not isinstance(part, Thinking):
            if part.cache is not None:
                return False
            parts[place] = part.replace_unchecked(cache=hint)
            return True
    return False


def with_fields(extras: Mapping[str, Any], dialect: str, fields: Mapping[str, Any]) -> FrozenDict:
    """The extras with these fields of the dialect in place of the given ones."""
    given = current(extras, dialect)
    others = {name: value for name, value in given.items() if name != dialect}
    return freeze_mapping({**others, dialect: fields} if fields else others, "the wire")


def with_changed_content(part: Part, change: Callable[[Any], Any]) -> Any:
    """The part, or the parts in a result's content, as changed; the same object if none is."""
    if not isinstance(part, ToolResult) or isinstance(part.content, str):
        return change(part)
    content = tuple([change(inner) for inner in part.content])
    if all(new is old for new, old in zip(content, part.content, strict=True)):
        return change(part)
    return change(part.replace_unchecked(content=content))


def with_own_hint(part: Any, dialect: str) -> Any:
    """The part with the hint among its dialect's fields; unchanged if there is none."""
    fields = fields_of(part.extras, dialect)
    hint = hint_of(fields.get(CACHE)) if fields and part.cache is None else None
    if hint is None:
        return part
    left = {name: value for name, value in fields.items() if name != CACHE}
    return part.replace_unchecked(cache=hint, extras=with_fields(part.extras, dialect, left))
