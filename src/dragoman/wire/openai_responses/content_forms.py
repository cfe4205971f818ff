"""The form of an object: which optional fields it had on the wire.

The wire allows several forms of the same thing: an item with or without `type`, `status` or empty
`annotations`. Each kind of object has a usual form. An object received in that form has no
overlay, so objects made by hand or stripped of their extras are encoded in it as well. Any other
object has an overlay that lists all its optional fields. An empty overlay (no optional fields)
differs from no overlay (the usual ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.model.parts import Part
from dragoman.wire.openai_responses.dialect import NAME

BARE: Final = FrozenDict({NAME: EMPTY})
"""The extras of an object received without any optional fields."""
_FREQUENT: tuple[dict[str, Any], ...] = (
    {"type": "message"},
    {"annotations": [], "logprobs": []},
    {"annotations": []},
    {"status": "completed"},
)
_SHARED: Final = tuple((form, FrozenDict({NAME: freeze_mapping(form)})) for form in _FREQUENT)
ITEM: Final = "item"
"""The overlay key, in an item's first part, for the optional fields of the item itself."""
CONTINUES: Final = False
"""The value of that key in later parts, if the item has no id that they share."""
ABSENT: Final = "$absent"
"""The overlay key, in the form of an item, for a field that it lacked and that we write."""
Item = Mapping[str, Any] | Literal[False] | None


def decode_form(
    optional: Mapping[str, Any],
    usual: Mapping[str, Any],
    item: Item = None,
) -> FrozenDict:
    """The extras for the optional fields of an object; empty if they are the usual ones.

    `item` holds those of the item that begins with this part, if unusual; or `CONTINUES`.
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
    """The optional fields to encode an object with."""
    found = extras.get(NAME)
    return found if isinstance(found, dict) else usual


def formed(
    body: dict[str, Any], extras: Mapping[str, Any], usual: Mapping[str, Any]
) -> dict[str, Any]:
    """Add the optional fields to a body, unless it already has them."""
    for key, value in encode_form(extras, usual).items():
        body.setdefault(key, value)
    return body


def with_form(body: dict[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """A body with the optional fields of its form, and without the field that it lacked."""
    body.update(form)
    body.pop(body.pop(ABSENT, ""), None)
    return body


def item_form(part: Part) -> Mapping[str, Any] | None:
    """The optional fields of the item that begins with this part, if they are unusual."""
    if not part.extras:
        return None
    found = part.extras.get(NAME)
    form: Any = found.get(ITEM) if isinstance(found, dict) else None
    return form if isinstance(form, dict) else None


def continues_item(part: Part) -> bool:
    """Whether a part is marked as belonging to the same item as the previous one."""
    found = part.extras.get(NAME)
    return isinstance(found, dict) and found.get(ITEM) is CONTINUES


def taken(fields: dict[str, Any], key: str, kind: type) -> Any:
    """Remove a field if it has the given type and return it, else None."""
    value = fields.get(key)
    is_other = not isinstance(value, kind) or (kind is int and isinstance(value, bool))
    return None if is_other else fields.pop(key)


def without(wire: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The fields of an object except the given ones."""
    left = dict(wire)
    for key in keys:
        left.pop(key, None)
    return left


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def decode_id(wire: Mapping[str, Any], optional: dict[str, Any]) -> str | None:
    """Decode an item's id; if it is not a string, it stays in the optional fields."""
    found = wire.get("id")
    if type(found) is str:
        del optional["id"]
        return found
    return None
