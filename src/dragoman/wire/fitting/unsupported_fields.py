"""Reports fields of parts that a dialect doesn't have as losses.

They are those that none of its rows is about (`Functions.unsupported`), or that its target lists
by kind of part (`Target.unsupported_part_fields`), unless its encoder reports them itself: support
may depend on more than the kind of part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.dialect import dialect, is_own_dialect
from dragoman.wire.losses import Loss
from dragoman.wire.target import Target

_REASON = "this field is not supported"


def unsupported_field_losses(
    system: tuple[Part, ...], messages: tuple[Message, ...], target: Target, told: Iterable[Loss]
) -> tuple[Loss, ...]:
    """The lost fields, unless that, or the loss of their part, is already reported."""
    if not unsupported_by(target):
        return ()
    found = [
        loss
        for path, parts in (
            ("system", system),
            *((f"messages[{i}].parts", message.parts) for i, message in enumerate(messages)),
        )
        for loss in _unsaid(parts, path, target)
    ]
    if not found:
        return ()
    known = {loss.path for loss in told}
    return tuple(
        loss
        for loss in dict.fromkeys(found)
        if loss.path not in known and loss.path.rpartition(".")[0] not in known
    )


def unsupported_by(target: Target) -> tuple[str, ...]:
    """The fields of parts that a target doesn't have, such as `Image.name`.

    Those of an installed dialect are in its target.
    """
    told = target.unsupported_part_fields
    return told if told or not is_own_dialect(target.dialect) else _without_rows(target.dialect)


@cache
def _without_rows(name: str) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(dialect(name), "unsupported", ())
    return found


def _unsaid(parts: Iterable[Part], path: str, target: Target) -> Iterator[Loss]:
    for index, part in enumerate(parts):
        where = f"{path}[{index}]"
        for name in _by_kind(unsupported_by(target)).get(type(part).__name__, ()):
            value = getattr(part, name)
            # A default is not a value: neither what decoders leave, nor a flag that is off.
            if value is None or value is False or value in ((), _defaults(type(part))[name]):
                continue
            if not _is_implied(part, name):
                yield Loss(f"{where}.{name}", _REASON)
        if type(part) is ToolResult and not isinstance(part.content, str):
            yield from _unsaid(part.content, f"{where}.content", target)
            for place, inner in enumerate(part.content):  # content of tool results is never signed
                if inner.signature is not None:
                    yield Loss(f"{where}.content[{place}].signature", _REASON)


def unsupported_name_losses(parts: Iterable[Part], path: str, target: Target) -> Iterator[Loss]:
    """Unsupported names in a response's parts: of media, and of tools with results.

    Other fields of a response's parts are sealed, or reported by the encoder.
    """
    named: dict[str, str] | None = None
    for index, part in enumerate(parts):
        for name in _by_kind(unsupported_by(target)).get(type(part).__name__, ()):
            if name == "name" and part.name is not None:  # type: ignore[attr-defined]  # media
                yield Loss(f"{path}[{index}].name", _REASON)
            elif name == "tool_name" and type(part) is ToolResult and part.tool_name is not None:
                if named is None:
                    named = {part.id: part.name for part in parts if isinstance(part, ToolCall)}
                if named.get(part.call_id) != part.tool_name:  # otherwise its call has the name
                    yield Loss(f"{path}[{index}].tool_name", _REASON)


@cache
def _defaults(kind: type[Part]) -> dict[str, Any]:
    return {field.name: field.default for field in msgspec.structs.fields(kind)}


@cache
def _by_kind(nowhere: tuple[str, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for field in nowhere:
        kind, _, name = field.partition(".")
        found.setdefault(kind, []).append(name)
    return found


def _is_implied(part: Part, name: str) -> bool:
    """Whether a field is implied: a type by the data, a transcript by audio, a tool by its call.

    In requests, every result has its call.
    """
    if name == "tool_name":
        return True
    if name == "mime":
        return getattr(part, "data", None) is not None
    return name == "transcript" and bool(part.item_id or getattr(part, "file_id", None))
