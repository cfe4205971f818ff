"""How an object was written: which of its optional fields the wire had.

The wire has several spellings of the same thing: an item with or without `type`, `status`, empty
`annotations`. Here each kind of object has a usual form. What came in it has no overlay, so an
object made by hand, or stripped of its extras, is written in it as well. Anything else has an
overlay that lists all its optional fields, maybe none: an empty overlay is not the same as none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Part
from dragoman.wire.openai_responses.dialect import NAME

BARE: Final = FrozenDict({NAME: EMPTY})
"""The extras of an object that came with none of its optional fields."""
_FREQUENT: tuple[dict[str, Any], ...] = (
    {"type": "message"},
    {"annotations": [], "logprobs": []},
    {"annotations": []},
    {"status": "completed"},
)
_SHARED: Final = tuple((form, FrozenDict({NAME: freeze_mapping(form)})) for form in _FREQUENT)
ITEM: Final = "item"
"""In the overlay of an item's first part: the optional fields of the item itself."""
GOES_ON: Final = False
"""In that place, in a part after the first: the item has no id that would tell."""
Item = Mapping[str, Any] | Literal[False] | None


def decode_form(
    optional: Mapping[str, Any],
    usual: Mapping[str, Any],
    item: Item = None,
) -> FrozenDict:
    """As extras: the optional fields an object came with; nothing if those are the usual ones.

    `item`: those of the item that begins with this part, where they have to be told; or `GOES_ON`.
    """
    if item is not None:
        return FrozenDict({NAME: freeze_mapping({**optional, ITEM: item}, "the wire")})
    if optional == usual:
        return EMPTY
    if not optional:
        return BARE
    for form, extras in _SHARED:
        if optional == form:
            return extras
    return FrozenDict({NAME: freeze_mapping(optional, "the wire")})


def encode_form(extras: Mapping[str, Any], usual: Mapping[str, Any]) -> Mapping[str, Any]:
    """The optional fields to write an object with."""
    found = extras.get(NAME)
    return found if isinstance(found, dict) else usual


def formed(
    body: dict[str, Any], extras: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """The body with the optional fields, where the model does not say otherwise."""
    for key, value in encode_form(extras, usual).items():
        body.setdefault(key, value)
    return body


def item_form(part: Part) -> Mapping[str, Any] | None:
    """The optional fields of the item that begins with this part, where they are unusual."""
    if not part.extras:
        return None
    found = part.extras.get(NAME)
    form: Any = found.get(ITEM) if isinstance(found, dict) else None
    return form if isinstance(form, dict) else None


def continues_item(part: Part) -> bool:
    """Whether a part says that it belongs to the same item as the one before it."""
    found = part.extras.get(NAME)
    return isinstance(found, dict) and found.get(ITEM) is GOES_ON


def taken(fields: dict[str, Any], key: str, kind: type) -> Any:
    """A field of that type, taken out of an object's fields; None where it is of another."""
    value = fields.get(key)
    is_other = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    return None if is_other else fields.pop(key)


def without(wire: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The fields of an object, but for these."""
    return {key: wire[key] for key in wire if key not in keys}


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}


def decode_id(wire: Mapping[str, Any], optional: dict[str, Any]) -> str | None:
    """An item's id; one that is not a text stays among the optional fields."""
    found = wire.get("id")
    if type(found) is str:
        del optional["id"]
        return found
    return None
