"""Values that are listed one by one: `enum` and `const`."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import Node, as_list, type_of
from dragoman.wire.schemas.notes import text_of
from dragoman.wire.schemas.run import Draft
from dragoman.wire.schemas.types import types_of_values

_ABOUT = ("title", "description", "default", "nullable", "examples")


def literal_step(draft: Draft) -> None:
    """List values as the target takes them: of its types, once each, as texts where it must."""
    node, profile = draft.node, draft.profile
    if profile.keywords is None or not ("enum" in node or "const" in node):
        return
    values = _members(draft)
    if "const" in node and profile.takes("const") and values and _is_taken(draft, values[0]):
        node.pop("enum", None)
        _add_type(draft, values)
        return
    if not values:
        node.pop("const", None)
        node.pop("enum", None)
        draft.lose("no value is allowed here, which can't be said", "No value fits.")
        if "type" not in node:
            node["type"] = "string"
        return
    _write(draft, values)


def _members(draft: Draft) -> list[Any]:
    """The values that the rest of the schema allows too."""
    rest = {key: value for key, value in draft.node.items() if key not in ("enum", "const")}
    values = as_list(draft.node.get("enum"))
    draft.run.budget.spend(len(values))
    if "const" in draft.node:
        only = draft.node["const"]
        is_listed = "enum" not in draft.node or text_of(only) in map(text_of, values)
        values = [only] if is_listed else []
    unique = {text_of(value): value for value in reversed(values)}
    return [value for value in reversed(unique.values()) if draft.run.fits(rest, value)]


def _is_taken(draft: Draft, value: Any) -> bool:
    profile = draft.profile
    is_empty = value == "" and profile.refuses_empty_literal
    return profile.literals is None or (type_of(value) in profile.literals and not is_empty)


def _write(draft: Draft, values: list[Any]) -> None:
    run, node = draft.run, draft.node
    most = draft.profile.most_literals
    if most is not None and run.literals + len(values) > most:
        draft.node = {**_bare(node), "enum": values, "type": types_of_values(values)}
        draft.drop("enum")
        return
    run.literals += len(values)
    if all(_is_taken(draft, value) for value in values):
        if "const" in node:
            node.pop("enum", None)
            node = draft.node = {("enum" if key == "const" else key): node[key] for key in node}
        if node["enum"] != values or len(node["enum"]) != len(values):
            node["enum"] = values
        _add_type(draft, values)
    elif {text_of(value) for value in values} == {"true", "false"}:
        draft.node = {**_bare(node), "type": "boolean"}
    elif values == [None]:
        draft.node = {**_bare(node), "type": "null"}
    else:
        _stringify(draft, values)


def _add_type(draft: Draft, values: list[Any]) -> None:
    node = draft.node
    if "type" not in node and draft.profile.needs_type:
        draft.node = {"type": types_of_values(values), **node}


def _bare(node: Node) -> Node:
    return {key: node[key] for key in _ABOUT if key in node}


def _stringify(draft: Draft, values: list[Any]) -> None:
    """Values as their JSON text; texts as they are, unless they look like one of those."""
    has_null = any(value is None for value in values)
    keeps_null = (
        has_null and draft.profile.literals is not None and "null" in draft.profile.literals
    )
    others = [value for value in values if not (keeps_null and value is None)]
    taken = {text_of(value) for value in others if not isinstance(value, str)}
    for value in others:
        is_plain = isinstance(value, str) and value not in taken and _is_taken(draft, value)
        text = value if is_plain else text_of(value)
        draft.plan.choices[text] = value
    draft.run.acts = True
    texts: list[Any] = list(draft.plan.choices)
    bare = _bare(draft.node)
    if "default" in bare:
        default = text_of(bare["default"])
        meant = (text for text, value in draft.plan.choices.items() if text_of(value) == default)
        bare["default"] = next(meant, default)
    draft.node = {**bare, "type": "string", "enum": texts}
    if keeps_null:
        draft.node |= {"type": ["string", "null"], "enum": [*texts, None]}
