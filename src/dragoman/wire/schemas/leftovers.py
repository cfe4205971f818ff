"""Every keyword that no other step knows: kept, compiled within, or told in words."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import (
    DEFINITIONS,
    NAMED,
    ONE,
    SEVERAL,
    SILENT,
    TOLD,
    Node,
    applies,
    as_list,
    as_map,
    declared,
)
from dragoman.wire.schemas.notes import note
from dragoman.wire.schemas.run import Draft, Run
from dragoman.wire.schemas.weights import weight_of

_LOOKAROUND = ("(?=", "(?!", "(?<=", "(?<!")
_CONDITION = ("if", "then", "else")
_TEXTS = ("title", "description")
_HANDLED = frozenset(
    {
        *("properties", "patternProperties", "additionalProperties"),
        *("items", "prefixItems", "anyOf", "oneOf"),
    }
)


def leftover_step(draft: Draft) -> None:
    """Leave out what the target does not take, and say it in words."""
    for key in DEFINITIONS:
        draft.node.pop(key, None)
    if draft.profile.keywords is None:
        _within(draft)
        return
    types = declared(draft.node)
    _whole_bounds(draft, types)
    for key in list(draft.node):
        if key in _TEXTS and not isinstance(draft.node[key], str):
            draft.lose(f"a {key} that is no text is left out")
            del draft.node[key]
        elif not draft.profile.takes(key):
            _leave_out(draft, key, types)
        elif not _takes_value(draft, key, draft.node[key]):
            draft.drop(key)


def _within(draft: Draft) -> None:
    """Compile the schemas in further keywords, for a target that takes them all."""
    for key, value in draft.node.items():
        if key in _HANDLED:
            continue
        if key in SEVERAL:
            several = enumerate(as_list(value))
            draft.node[key] = [draft.child(each, f"{key}[{at}]")[0] for at, each in several]
        elif key in ONE and isinstance(value, dict):
            draft.node[key] = draft.child(value, key)[0]
        elif key in NAMED:
            named = enumerate(as_map(value).items())
            draft.node[key] = {
                name: draft.child(each, f"{key}[{at}]")[0] for at, (name, each) in named
            }


def _takes_value(draft: Draft, key: str, value: Any) -> bool:
    """Whether the target takes this keyword with that value."""
    profile = draft.profile
    if key == "format":
        return profile.formats is None or (isinstance(value, str) and value in profile.formats)
    if key == "pattern":
        return not (profile.refuses_lookaround and _looks_around(value))
    if key == "minItems" and profile.most_min_items is not None:
        return isinstance(value, int) and value <= profile.most_min_items
    return True


def _looks_around(pattern: Any) -> bool:
    return not isinstance(pattern, str) or any(each in pattern for each in _LOOKAROUND)


def _whole_bounds(draft: Draft, types: list[str]) -> None:
    """For whole numbers, "more than 0" is "at least 1"."""
    if types != ["integer"]:
        return
    bounds = (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1))
    for key, plain, step in bounds:
        bound: Any = draft.node.get(key)
        if type(bound) is int and not draft.profile.takes(key) and draft.profile.takes(plain):
            del draft.node[key]
            bound += step
            other = draft.node.get(plain, bound)
            if type(other) in (int, float):
                bound = max(bound, other) if step > 0 else min(bound, other)
            draft.node[plain] = bound


def _leave_out(draft: Draft, key: str, types: list[str]) -> None:
    """Take out a keyword: silently where it says nothing, else in words."""
    value = draft.node[key]
    if key in TOLD:
        draft.tell(note(key, value))
    elif key == "if":
        rules = {name: draft.node[name] for name in _CONDITION if name in draft.node}
        if len(rules) > 1:
            draft.lose("if is told in words", f"Also, by JSON Schema: {draft.run.text_of(rules)}.")
    elif not (_is_silent(key, types) or _says_nothing(key, value)):
        draft.drop(key)
        return
    del draft.node[key]


def _is_silent(key: str, types: list[str]) -> bool:
    is_told = key in ("then", "else")  # with `if`
    return is_told or key in SILENT or key.startswith("x-") or not applies(key, types)


def _says_nothing(key: str, value: Any) -> bool:
    if key == "uniqueItems":
        return value is False
    return (value is True or value in ({}, [])) and key != "not"


def check_limits(run: Run, schema: Node) -> None:
    """Note what there is too much of in a schema as a whole."""
    profile, weight = run.profile, weight_of(schema)
    for most, count, what in (
        (profile.most_properties, weight.properties, "properties"),
        (profile.most_optional, weight.optional, "optional properties"),
        (profile.most_unions, weight.unions, "unions"),
    ):
        if most is not None and count > most:
            reason = f"there are more {what} than the {most} that the target takes"
            run.lose("", reason, bends=True)
