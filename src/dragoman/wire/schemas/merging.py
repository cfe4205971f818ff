"""Merges schemas: `allOf`, alternatives, and definitions inlined for references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.validation.words import is_number
from dragoman.wire.schemas.compilation import Draft, Run, described, note
from dragoman.wire.schemas.keywords import (
    DEFINITIONS,
    Node,
    as_list,
    as_map,
    declared,
    one_or_list,
    texts_in,
    without,
)
from dragoman.wire.schemas.references import Pointer
from dragoman.wire.schemas.types import anything

Lose = Callable[[str, Any], None]
"""Called with a keyword, and its value, that could not be merged."""

_MAX_PRODUCT = 16
_LOWER_BOUNDS = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_UPPER_BOUNDS = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_FIRST = frozenset({"title", "default", "example", "examples", "$schema", "$id", "$comment"})
_INNER = frozenset({"items", "additionalProperties", "contains", "propertyNames"})


def intersected(run: Run, one: Node, other: Node, lose: Lose) -> Node:
    """A schema that requires both; what can't be combined is reported to `lose`."""
    merged = dict(one)
    _note_closed(run, one, other, lose)
    for key, value in other.items():
        if key not in merged:
            merged[key] = value
        elif not run.is_same(merged[key], value):
            merged[key] = _both(run, key, merged[key], value, lose)
    return merged


def _note_closed(run: Run, one: Node, other: Node, lose: Lose) -> None:
    """Report properties that the other, closed schema forbids, which is hardly ever intended."""
    for closed, adding in ((one, other), (other, one)):
        rest = closed.get("additionalProperties", True)
        if rest is True or rest == {}:
            continue
        known, named = as_map(closed.get("properties")), as_map(adding.get("properties"))
        run.budget.spend_on(4 * len(named))
        if any(name not in known for name in named):
            lose("additionalProperties", None)


def _both(run: Run, key: str, one: Any, other: Any, lose: Lose) -> Any:
    if key in (_LOWER_BOUNDS | _UPPER_BOUNDS) and is_number(one) and is_number(other):
        return max(one, other) if key in _LOWER_BOUNDS else min(one, other)
    if key in _MERGERS:
        merged = _MERGERS[key](run, one, other)
        if merged is not None:
            return merged
    elif key in _INNER:
        return _together(one, other)
    elif key in _FIRST:
        return one
    lose(key, other)
    return one


def _together(one: Any, other: Any) -> Any:
    """Two schemas that must both hold, left to be merged where they are compiled."""
    if isinstance(one, bool) or isinstance(other, bool):
        return _with_boolean(one, other)
    if isinstance(one, dict) and one.keys() == {"allOf"}:  # keeps long lists flat
        return {"allOf": [*as_list(one["allOf"]), other]}
    return {"allOf": [one, other]}


def _with_boolean(one: Any, other: Any) -> Any:
    if one is False or other is False:
        return False
    return other if one is True else one


def _types(_run: Run, one: Any, other: Any) -> Any:
    first, second = declared({"type": one}), declared({"type": other})
    either, common = {*first, *second}, {*first} & {*second}
    both = [kind for kind in dict.fromkeys(first) if kind in common]
    if "integer" not in common and {"number", "integer"} <= either:
        both += ["integer"]
    return one_or_list(both) if both else None


def _values(run: Run, one: Any, other: Any) -> Any:
    common = set(map(run.text_of, as_list(other)))
    return [value for value in as_list(one) if run.text_of(value) in common] or None


def _alternatives(_run: Run, one: Any, other: Any) -> Any:
    """Every combination of two lists of alternatives, if they are few."""
    first, second = as_list(one), as_list(other)
    if not first or not second or len(first) * len(second) > _MAX_PRODUCT:
        return None
    return [{"allOf": [left, right]} for left in first for right in second]


def _excluded(_run: Run, one: Any, other: Any) -> Any:
    if isinstance(one, dict) and one.keys() == {"anyOf"}:
        return {"anyOf": [*as_list(one["anyOf"]), other]}
    return {"anyOf": [one, other]}


def _descriptions(run: Run, one: Any, other: Any) -> Any:
    texts = [text for text in (one, other) if isinstance(text, str) and text]
    run.budget.spend_on(sum(map(len, texts)))
    return "\n".join(dict.fromkeys(texts))


def _properties(run: Run, one: Any, other: Any) -> Any:
    merged = dict(as_map(one))
    run.budget.spend_on(len(merged))
    for name, schema in as_map(other).items():
        if name not in merged:
            merged[name] = schema
        elif not run.is_same(merged[name], schema):
            merged[name] = _together(merged[name], schema)
    return merged


def _required(run: Run, one: Any, other: Any) -> Any:
    names = [*texts_in(one), *texts_in(other)]
    run.budget.spend_on(4 * len(names))
    return list(dict.fromkeys(names))


def _in_a_row(run: Run, one: Any, other: Any) -> Any:
    rows = [*as_list(one), *as_list(other)]
    run.budget.spend_on(len(rows))
    return rows


def _definitions(run: Run, one: Any, other: Any) -> Any:
    named = {**as_map(other), **as_map(one)}
    run.budget.spend_on(len(named))
    return named


_MERGERS: dict[str, Callable[[Run, Any, Any], Any]] = {
    "type": _types,
    "description": _descriptions,
    "properties": _properties,
    "required": _required,
    "enum": _values,
    "anyOf": _alternatives,
    "not": _excluded,
    "allOf": _in_a_row,
    "$defs": _definitions,
    "definitions": _definitions,
}
"""Return None if the two can't be combined."""


def united(run: Run, branches: list[Node]) -> Node:
    """An object schema that accepts what any of these objects accepts, and possibly more (W62)."""
    properties: dict[str, list[Any]] = {}
    required = dict.fromkeys(texts_in(branches[0].get("required")))
    for branch in branches:
        for name, schema in as_map(branch.get("properties")).items():
            properties.setdefault(name, []).append(schema)
        named = {*texts_in(branch.get("required"))}
        run.budget.spend_on(4 * (len(named) + len(required)))
        required = {name: None for name in required if name in named}
    distinct = {name: run.distinct(schemas) for name, schemas in properties.items()}
    merged: Node = {
        "type": "object",
        "properties": {
            name: schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
            for name, schemas in distinct.items()
        },
    }
    if required:
        merged["required"] = list(required)
    if all(branch.get("additionalProperties") is False for branch in branches):
        merged["additionalProperties"] = False
    return merged


# --- inlining: definitions for references, `allOf` as one schema

_ABOUT = frozenset({"title", "description", "default", "examples"})


def open_references(draft: Draft, *, may_keep: bool = True) -> None:
    """Inline the definitions of references that can't be kept."""
    run = draft.run
    while "$ref" in draft.node:
        found = run.references.find(draft.node["$ref"])
        rest = without(draft.node, ("$ref",))
        if found is None:
            draft.lose("an unresolvable reference is left out")
            draft.node = rest
            continue
        pointer, target = found
        if may_keep and _keeps(draft, pointer, rest):
            return
        run.spend()
        if run.inside[pointer] >= draft.profile.unrolled:
            draft.node = rest
            draft.node = cut(draft)
            return
        run.inside[pointer] += 1
        draft.entered.append(pointer)
        node = target if isinstance(target, dict) else {} if target is True else {"not": {}}
        _merge(draft, rest, without(node, DEFINITIONS))


def _keeps(draft: Draft, pointer: Pointer, rest: Node) -> bool:
    """Whether a reference is kept; if necessary, as a single alternative."""
    profile = draft.profile
    if not profile.takes("$ref") or draft.place.is_root:
        return False
    is_circular = draft.run.references.is_circular(pointer)
    if is_circular and (profile.cycles == "cut" or _must_open(draft, pointer)):
        return False
    siblings = profile.reference_siblings
    beside = rest.keys() - {*DEFINITIONS}
    if siblings is None or beside <= siblings:
        return True
    if is_circular and beside <= _ABOUT:
        draft.node = {**rest, "anyOf": [{"$ref": draft.node["$ref"]}]}
        return True
    return False


def _must_open(draft: Draft, pointer: Pointer) -> bool:
    """Whether a circular reference is in a position that can't be omitted."""
    run, place = draft.run, draft.place
    if draft.profile.cycles != "optional" or place.is_optional:
        return False
    return run.inside[pointer] > 0 or run.references.share_circle(place.home, pointer)


def merge_all(draft: Draft) -> None:
    """Merge `allOf` and its sibling keywords into one schema."""
    pending = as_list(draft.node.pop("allOf"))[::-1]
    while pending:
        draft.run.spend()
        branch = pending.pop()
        if branch is True or branch == {}:
            continue
        part = Draft(draft.run, dict(as_map(branch)), draft.place)
        if not isinstance(branch, dict):
            part.node = {"not": {}}
        open_references(part, may_keep=False)
        draft.entered += part.entered
        draft.notes += part.notes
        pending += as_list(part.node.pop("allOf", []))[::-1]
        _merge(draft, draft.node, part.node)


def _merge(draft: Draft, one: Node, other: Node) -> None:
    def lose(key: str, value: Any) -> None:
        if key == "additionalProperties":
            draft.lose("schemas that exclude each other's properties are merged")
        else:
            draft.lose(f"conflicting {key} is moved to the description", note(key, value))

    draft.node = intersected(draft.run, one, other, lose)


def cut(draft: Draft) -> Node:
    """A placeholder where the schema exceeds the nesting limit."""
    draft.is_cut = True
    draft.lose("deeper levels are cut off", is_unfaithful=True)
    said = draft.node.get("description")
    about = {"description": said} if isinstance(said, str) else {}
    return described({**anything(draft.profile), **about}, draft.notes)
