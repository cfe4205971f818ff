"""What another library's object held that our values don't say, kept so that it can go back.

Fields that we would not write are an overlay in the extras, as in the dialects. An object of
another shape than we would write is kept whole, and written again while it still says what the
part says: an edit wins over what was kept.
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
"""An object of another library, dumped."""


def text_at(given: Given, key: str) -> str | None:
    """A field that is a text; None where it is not."""
    found = given.get(key)
    return found if isinstance(found, str) else None


def mapping_at(given: Given, key: str) -> Given:
    """A field that is an object; an empty one where it is not."""
    found = given.get(key)
    return found if isinstance(found, Mapping) else EMPTY


def count_at(given: Given, key: str) -> int:
    """A field that is a number of tokens; 0 where it is not."""
    found = given.get(key)
    return found if type(found) is int and found > 0 else 0


def usage_of(
    given: Given, read: int, written: int, thought: int, total: int | None = None
) -> Usage:
    """Counts of which `input_tokens` and `output_tokens` include what was cached and thought."""
    total_input, total_output = count_at(given, "input_tokens"), count_at(given, "output_tokens")
    read, thought = min(read, total_input), min(thought, total_output)
    written = min(written, total_input - read)
    return Usage(
        total_input - read - written, total_output - thought, read, written, thought, total
    )


# Names with a colon are notes: nobody is told that another dialect does not know them.
_GIVEN = ":given"
_COUNT = ":parts"
_DATA = "\ue000"
"""Stands for a medium's data in an object that is kept: nobody wants it stored twice."""
_LONG = 256


class Writing:
    """A conversation being written: what has no place, and where the writer is."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.omitted: list[Loss] = []
        """Facts about messages that were not said by anybody: token counts, times."""
        self.message = 0
        self.part = 0

    def lose(self, reason: str, field: str = "") -> None:
        """Note that the part being written, or a field of it, has no place there."""
        self.losses.append(Loss(f"messages[{self.message}].parts[{self.part}]{field}", reason))

    def lose_at(self, part: int, reason: str) -> None:
        """Note that the part at that place has no place there."""
        self.part = part
        self.lose(reason)

    def lose_inside(self, item: int, reason: str) -> None:
        """Note that an item of the result being written has no place there."""
        self.lose(reason, f".content[{item}]")

    def lose_field(self, field: str, reason: str) -> None:
        """Note that a field of the message has no place there."""
        self.losses.append(Loss(f"messages[{self.message}].{field}", reason))

    def omit(self, field: str, reason: str) -> None:
        """Note a fact about the message that has no place there."""
        self.omitted.append(Loss(f"messages[{self.message}].{field}", reason))


class Keeper:
    """Keeps and puts back what one library's objects held."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._whole = f"{name} object"

    # --- fields

    def with_fields(self, part: P, given: Mapping[str, Any], ours: Mapping[str, Any]) -> P:
        """The part with the fields of its object that we would not write."""
        extras = overlay_of(given, (), self.name, ours, notes_absent=False)
        return replace(part, extras={**part.extras, **extras}) if extras else part

    def put_back(self, ours: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
        """The object with the fields that were kept."""
        return ours if extras is EMPTY else with_overlay(ours, extras, self.name)

    def fields(self, extras: Mapping[str, Any]) -> Mapping[str, Any]:
        """The fields that were kept."""
        found = extras.get(self.name)
        return found if isinstance(found, Mapping) else EMPTY

    # --- whole objects

    def keep_whole(self, parts: Sequence[AnyPart], given: Any) -> list[AnyPart]:
        """The parts that an object was read into, the first of them with the object itself."""
        first, *others = parts
        kept: dict[str, Any] = {_GIVEN: _cut(given, first)}
        if others:
            kept[_COUNT] = len(parts)
        return [replace(first, extras={**first.extras, self._whole: kept}), *others]

    def whole(
        self, parts: Sequence[AnyPart], at: int, read: Callable[[Any], Sequence[AnyPart]]
    ) -> tuple[Any, int] | None:
        """The object kept for the part at that place, and how many parts it stands for.

        None where there is none, or where it no longer says what they say.
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
        """The extras that are others'."""
        own = {*overlay_keys(self.name), self._whole}
        return {key: extras[key] for key in extras if key not in own}


def says_same(one: AnyPart, other: AnyPart) -> bool:
    """Whether two parts say the same, ids included."""
    if one != other or one.item_id != other.item_id or one.signature != other.signature:
        return False
    if isinstance(one, ToolCall) and isinstance(other, ToolCall):
        return wire_id_of(one) == wire_id_of(other)
    if isinstance(one, ToolResult) and isinstance(other, ToolResult):
        return one.call_id == other.call_id
    return one.cache == other.cache


def wire_id_of(call: ToolCall) -> str | None:
    """The id that a call has on its wire."""
    return call.wire_id if isinstance(call.wire_id, str | None) else call.id


def _data_of(part: AnyPart) -> str | None:
    data = part.data if isinstance(part, Media) else None
    return data if data is not None and len(data) > _LONG else None


def _cut(given: Any, part: AnyPart) -> Any:
    """The object without the medium's data, which the part has."""
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
