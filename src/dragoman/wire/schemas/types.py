"""The types of a schema, including null, and enumerated values."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.compilation import Draft, text_of
from dragoman.wire.schemas.keywords import (
    TYPE_OF,
    TYPES,
    Node,
    applies,
    as_list,
    as_map,
    declared,
    one_or_list,
    only,
    type_of,
    without,
)
from dragoman.wire.schemas.profiles import Profile

_ALIASES = {  # Python's names, which some clients send
    "int": "integer",
    "str": "string",
    "float": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "any": "",
}
_UNTYPED = ("anyOf", "oneOf", "$ref", "enum", "const", "allOf")
_NULL = "null"


def inferred(node: Node) -> list[str]:
    """The types that a schema's keywords apply to."""
    return list(dict.fromkeys(TYPE_OF[key] for key in node if key in TYPE_OF))


def type_step(draft: Draft) -> None:
    """Give the schema a type that the target supports."""
    _spell_types(draft)
    if draft.profile.keywords is None:
        return
    if draft.node.pop("nullable", None) is True:
        draft.node = with_null(draft.node)
    if draft.profile.needs_type:
        _name_types(draft)
    if draft.profile.has_single_types:
        _single_type(draft)


def _spell_types(draft: Draft) -> None:
    node = draft.node
    if "type" not in node:
        return
    named = declared(node)
    lower = [_ALIASES.get(name.lower(), name.lower()) for name in named]
    known = list(dict.fromkeys(name for name in lower if name in TYPES))
    if known == named and (known == [node["type"]] or known == node["type"]):
        return
    if known:
        node["type"] = one_or_list(known)
    else:
        del node["type"]
    if not named or any(name and name not in TYPES for name in lower):
        draft.lose("a type unknown to JSON Schema is left out")


def _name_types(draft: Draft) -> None:
    node = draft.node
    if "type" in node or any(key in node for key in _UNTYPED):
        return
    types = inferred(node)
    if types:
        node["type"] = one_or_list(types)
    else:
        draft.lose("a value of any type is not supported", "Any JSON value.", is_unfaithful=True)
        draft.node = {"type": [*draft.profile.any_types], **node}


def anything(profile: Profile) -> Node:
    """A placeholder schema: any value, or a string if only a single type is possible."""
    if not profile.needs_type:
        return {}
    return {"type": "string" if profile.has_single_types else [*profile.any_types]}


def _single_type(draft: Draft) -> None:
    """Reduce to one type, with `nullable` beside it; several become alternatives (W91)."""
    node = draft.node
    is_nullable = draft.run.fits(node, None)
    if is_nullable and (is_null(node) or _is_null_only(node)):
        draft.node = {**only(node, ("title", "description")), "type": _NULL}
        return
    node = without_null(node)
    if not is_nullable and draft.run.fits(node, None):
        # Two of the alternatives allowed null, so that null did not fit exactly one.
        draft.lose("oneOf is moved to the description", "Only one may fit.")
    types = declared(node)
    if len(types) > 1:
        node = _split(node, types)
    if is_nullable and not draft.run.fits(node, None):
        node["nullable"] = True
    draft.node = node


def _is_null_only(node: Node) -> bool:
    values = as_list(node.get("enum"))
    branches = as_list(node.get("anyOf")) or as_list(node.get("oneOf"))
    is_listed = bool(values) and all(value is None for value in values)
    return is_listed or (bool(branches) and all(map(is_null, branches)))


def _split(node: Node, types: list[str]) -> Node:
    """Split a schema of several types into alternatives of one type each."""
    about = {key: node[key] for key in node if key in ("title", "description", "default")}
    rest = without(node, {*about, "type"})
    branches = [
        {"type": kind, **{key: rest[key] for key in rest if applies(key, [kind])}} for kind in types
    ]
    return {**about, "anyOf": branches} if "anyOf" not in rest else {**node, "type": types[0]}


def is_null(schema: Any) -> bool:
    """Whether a schema allows null and nothing else, annotated or not (W91)."""
    if not isinstance(schema, dict):
        return False
    if "const" in schema:
        return schema["const"] is None
    return schema.get("type") in (_NULL, [_NULL]) or _is_null_only(schema)


def without_null(node: Node) -> Node:
    """The schema without null."""
    bare = dict(node)
    types = declared(node)
    if len(types) > 1 and _NULL in types:
        left = [kind for kind in types if kind != _NULL]
        bare["type"] = one_or_list(left)
    if None in as_list(node.get("enum")):
        bare["enum"] = [value for value in node["enum"] if value is not None]
    for key in ("anyOf", "oneOf"):
        branches = as_list(node.get(key))
        left = [branch for branch in branches if not is_null(branch)]
        if left and len(left) < len(branches):
            bare[key] = left
    return bare


def with_null(node: Node) -> Node:
    """The schema, also allowing null."""
    if "$ref" in node:
        about = only(node, ("title", "description"))
        return {**about, "anyOf": [without(node, about), {"type": _NULL}]}
    if "anyOf" in node:
        has_null = any(_NULL in declared(as_map(branch)) for branch in node["anyOf"])
        return node if has_null else {**node, "anyOf": [*node["anyOf"], {"type": _NULL}]}
    if "const" in node:
        node = {("enum" if key == "const" else key): node[key] for key in node}
        node["enum"] = [node["enum"]]
    wider = dict(node)
    if isinstance(node.get("enum"), list) and None not in node["enum"]:
        wider["enum"] = [*node["enum"], None]
    types = declared(node)
    if types and _NULL not in types:
        wider["type"] = [*types, _NULL]
    return wider


def types_of_values(values: list[Any]) -> Any:
    """The types of some values, in the form of `type`."""
    types = list(dict.fromkeys(type_of(value) for value in values))
    if "number" in types and "integer" in types:
        types.remove("integer")
    return one_or_list(types)


# --- enumerated values: `enum` and `const`

_ABOUT = ("title", "description", "default", "nullable", "examples")


def literal_step(draft: Draft) -> None:
    """Write values as the target supports them: of its types, unique, as strings if necessary."""
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
        draft.lose("a schema that allows no value is not supported", "No value fits.")
        if "type" not in node:
            node["type"] = "string"
        return
    _write(draft, values)


def _members(draft: Draft) -> list[Any]:
    """The values that the rest of the schema also allows."""
    rest = without(draft.node, ("enum", "const"))
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
    most = draft.profile.max_literals
    if most is not None and run.literals + len(values) > most:
        draft.node = {**only(node, _ABOUT), "enum": values, "type": types_of_values(values)}
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
        draft.node = {**only(node, _ABOUT), "type": "boolean"}
    elif values == [None]:
        draft.node = {**only(node, _ABOUT), "type": "null"}
    else:
        _stringify(draft, values)


def _add_type(draft: Draft, values: list[Any]) -> None:
    node = draft.node
    if "type" not in node and draft.profile.needs_type:
        draft.node = {"type": types_of_values(values), **node}


def _stringify(draft: Draft, values: list[Any]) -> None:
    """Replace values by their JSON text; strings stay, unless they equal one of those."""
    keeps_null = None in values and "null" in (draft.profile.literals or ())
    others = [value for value in values if not (keeps_null and value is None)]
    taken = {text_of(value) for value in others if not isinstance(value, str)}
    for value in others:
        is_plain = isinstance(value, str) and value not in taken and _is_taken(draft, value)
        text = value if is_plain else text_of(value)
        draft.plan.choices[text] = value
    draft.run.has_undo = True
    texts: list[Any] = list(draft.plan.choices)
    bare = only(draft.node, _ABOUT)
    if "default" in bare:
        default = text_of(bare["default"])
        meant = (text for text, value in draft.plan.choices.items() if text_of(value) == default)
        bare["default"] = next(meant, default)
    draft.node = {**bare, "type": "string", "enum": texts}
    if keeps_null:
        draft.node |= {"type": ["string", "null"], "enum": [*texts, None]}
