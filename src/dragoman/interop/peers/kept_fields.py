"""Keeps what another library's object holds beyond our values, so that it can be restored.

Fields that we would not write are an overlay in the extras, as in dialects. An object of another
shape than we would write is kept whole, and restored as long as it still matches the part: an edit
takes precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY, thaw
from dragoman.model.media import Media
from dragoman.model.parts import Part
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import overlay_keys, overlay_of, with_overlay

P = TypeVar("P", bound=Part)
Given = Mapping[str, Any]
"""The dump of another library's object."""


def text_at(given: Given, key: str) -> str | None:
    """A string field; None if it isn't one."""
    found = given.get(key)
    return found if isinstance(found, str) else None


def mapping_at(given: Given, key: str) -> Given:
    """An object field; empty if it isn't one."""
    found = given.get(key)
    return found if isinstance(found, Mapping) else EMPTY


def count_at(given: Given, key: str) -> int:
    """A token count; 0 if it isn't one."""
    found = given.get(key)
    return found if type(found) is int and found > 0 else 0


def usage_of(
    given: Given, read: int, written: int, thought: int, total: int | None = None
) -> Usage:
    """Usage from counts whose `input_tokens` and `output_tokens` include cache and thinking."""
    total_input, total_output = count_at(given, "input_tokens"), count_at(given, "output_tokens")
    read, thought = min(read, total_input), min(thought, total_output)
    written = min(written, total_input - read)
    return Usage(
        total_input - read - written, total_output - thought, read, written, thought, total
    )


# Names with a colon are private notes: leaving them out is not reported as a loss.
_GIVEN = ":given"
_COUNT = ":parts"
_DATA = "\ue000"
"""Placeholder for media data in a kept object, so that it is not stored twice."""
_LONG = 256


class Writing:
    """The state of an encoder: losses, and the current position."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.omitted: list[Loss] = []
        """Metadata of messages that is lost, such as token counts and times."""
        self.message = 0
        self.part = 0

    def lose(self, reason: str, field: str = "") -> None:
        """Report that the current part, or a field of it, is unsupported."""
        self.losses.append(Loss(f"messages[{self.message}].parts[{self.part}]{field}", reason))

    def lose_at(self, part: int, reason: str) -> None:
        """Report that the part at that index is unsupported."""
        self.part = part
        self.lose(reason)

    def lose_inside(self, item: int, reason: str) -> None:
        """Report that an item of the current result is unsupported."""
        self.lose(reason, f".content[{item}]")

    def lose_field(self, field: str, reason: str) -> None:
        """Report that a field of the message is unsupported."""
        self.losses.append(Loss(f"messages[{self.message}].{field}", reason))

    def omit(self, field: str, reason: str) -> None:
        """Report that metadata of the message is unsupported."""
        self.omitted.append(Loss(f"messages[{self.message}].{field}", reason))


class Keeper:
    """Keeps and restores what one library's objects hold."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._whole = f"{name} object"

    # --- fields

    def with_fields(self, part: P, given: Mapping[str, Any], ours: Mapping[str, Any]) -> P:
        """The part with those fields of its object that we would not write."""
        extras = overlay_of(given, (), self.name, ours, notes_absent=False)
        return replace(part, extras={**part.extras, **extras}) if extras else part

    def put_back(self, ours: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
        """The object with the kept fields."""
        return ours if extras is EMPTY else with_overlay(ours, extras, self.name)

    def fields(self, extras: Mapping[str, Any]) -> Mapping[str, Any]:
        """The kept fields."""
        found = extras.get(self.name)
        return found if isinstance(found, Mapping) else EMPTY

    # --- whole objects

    def keep_whole(self, parts: Sequence[AnyPart], given: Any) -> list[AnyPart]:
        """The parts that an object was decoded into; the first keeps the object itself."""
        first, *others = parts
        kept: dict[str, Any] = {_GIVEN: _cut(given, first)}
        if others:
            kept[_COUNT] = len(parts)
        return [replace(first, extras={**first.extras, self._whole: kept}), *others]

    def whole(
        self, parts: Sequence[AnyPart], at: int, read: Callable[[Any], Sequence[AnyPart]]
    ) -> tuple[Any, int] | None:
        """The object kept for the part at that index, and how many parts it represents.

        None if there is none, or if it no longer matches the parts.
        """
        kept = parts[at].extras.get(self._whole)
        if not isinstance(kept, Mapping):
            return None
        count = kept.get(_COUNT, 1)
        given = _uncut(thaw(kept.get(_GIVEN)), parts[at])
        present = parts[at : at + count] if isinstance(count, int) else ()
        again = read(given)
        if len(again) != len(present) or not all(map(says_same, again, present)):
            return None
        return given, len(present)

    def given(self, part: Part) -> Any:
        """The object that was kept for a part without media."""
        kept = part.extras.get(self._whole)
        return thaw(kept.get(_GIVEN)) if isinstance(kept, Mapping) else None

    def without_own(self, extras: Mapping[str, Any]) -> dict[str, Any]:
        """The extras of others."""
        own = {*overlay_keys(self.name), self._whole}
        return {key: extras[key] for key in extras if key not in own}


def says_same(one: AnyPart, other: AnyPart) -> bool:
    """Whether two parts are equal, ids included."""
    if one != other or one.item_id != other.item_id or one.signature != other.signature:
        return False
    if isinstance(one, ToolCall) and isinstance(other, ToolCall):
        return wire_id_of(one) == wire_id_of(other)
    if isinstance(one, ToolResult) and isinstance(other, ToolResult):
        return one.call_id == other.call_id
    return one.cache == other.cache


def wire_id_of(call: ToolCall) -> str | None:
    """The wire id of a call."""
    return call.wire_id if isinstance(call.wire_id, str | None) else call.id


def _data_of(part: AnyPart) -> str | None:
    data = part.data if isinstance(part, Media) else None
    return data if data is not None and len(data) > _LONG else None


def _cut(given: Any, part: AnyPart) -> Any:
    """The object without the media data, which the part has."""
    data = _data_of(part)
    if data is None or _holds(given, _DATA):
        return given
    return _replaced(given, data, _DATA)


def _uncut(given: Any, part: AnyPart) -> Any:
    data = _data_of(part)
    return given if data is None else _replaced(given, _DATA, data)


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {key: _replaced(item, old, new) for key, item in value.items()}
    return [_replaced(item, old, new) for item in value] if isinstance(value, list) else value


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        return any(_holds(item, text) for item in value.values())
    return isinstance(value, list) and any(_holds(item, text) for item in value)
