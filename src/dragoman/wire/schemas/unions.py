"""Alternatives: `anyOf`, and `oneOf`, which becomes `anyOf` if unsupported."""

from __future__ import annotations

from collections import Counter
from typing import Any

from dragoman.wire.schemas.compilation import Draft, Run, described, note
from dragoman.wire.schemas.keywords import (
    Node,
    as_list,
    as_map,
    declared,
    texts_in,
    type_of,
    without,
)
from dragoman.wire.schemas.merging import united
from dragoman.wire.schemas.types import inferred, is_null
from dragoman.wire.schemas.undo import CUT, Plan

_MAX_COMPARED = 40
_ABOUT = ("title", "description", "default")


def malformed_step(draft: Draft) -> None:
    """Drop alternatives that are not a non-empty list."""
    for key in ("anyOf", "oneOf"):
        if key in draft.node and not as_list(draft.node[key]):
            draft.lose(f"{key} without alternatives is left out")
            del draft.node[key]


def union_step(draft: Draft) -> bool:
    """Compile the alternatives; returns whether there are any."""
    _one_as_any(draft)
    if "anyOf" not in draft.node and "oneOf" not in draft.node:
        return False
    for key in ("anyOf", "oneOf"):
        if key in draft.node:
            if draft.profile.union_siblings is not None:
                _push_siblings(draft, key)
            _branches(draft, key)
    return True


def _one_as_any(draft: Draft) -> None:
    node = draft.node
    if "oneOf" not in node or draft.profile.takes("oneOf"):
        return
    if not are_apart(draft.run, node["oneOf"]):
        draft.lose("oneOf is moved to the description", "Only one may fit.")
    if "anyOf" in node:
        others = node.pop("oneOf")
        draft.run.budget.spend(len(node["anyOf"]) * len(others))
        node["anyOf"] = [{"allOf": [one, other]} for one in node["anyOf"] for other in others]
    else:
        draft.node = {("anyOf" if key == "oneOf" else key): node[key] for key in node}


def are_apart(run: Run, branches: list[Any]) -> bool:
    """Whether no value can fit two of these, because of types or of a discriminating property."""
    if len(branches) > _MAX_COMPARED:
        return False
    nodes = [opened(run, branch) for branch in branches]
    pairs = [(one, other) for at, one in enumerate(nodes) for other in nodes[at + 1 :]]
    return all(_differ(run, one, other) for one, other in pairs)


def opened(run: Run, schema: Any) -> Node:
    """The schema itself, or the one that it refers to."""
    node = as_map(schema)
    found = run.references.find(node.get("$ref"))
    return as_map(found[1]) if found is not None else node


def _differ(run: Run, one: Node, other: Node) -> bool:
    run.budget.spend()
    first, second = _types(one), _types(other)
    if first and second and not first & second:
        return True
    if first != {"object"} or second != {"object"}:
        return _list_others(run, one, other)
    needed = {*texts_in(other.get("required"))}
    shared = [name for name in texts_in(one.get("required")) if name in needed]
    run.budget.spend_on(4 * len(needed))
    return any(_is_tag(run, name, one, other) for name in shared)


def _types(node: Node) -> set[str]:
    values = [node["const"]] if "const" in node else as_list(node.get("enum"))
    types = set(declared(node)) or set(map(type_of, values))
    if node.get("nullable") is True:
        types.add("null")
    return types | ({"integer"} if "number" in types else set())


def _listed(run: Run, node: Any) -> set[str] | None:
    if not isinstance(node, dict):
        return None
    if "const" in node:
        return {run.text_of(node["const"])}
    values = as_list(node.get("enum"))
    run.budget.spend(len(values))
    return set(map(run.text_of, values)) or None


def _is_tag(run: Run, name: str, one: Node, other: Node) -> bool:
    run.budget.spend()
    mine, theirs = (as_map(node.get("properties")).get(name) for node in (one, other))
    return _list_others(run, mine, theirs)


def _list_others(run: Run, one: Any, other: Any) -> bool:
    """Whether two schemas enumerate values, and have none in common."""
    mine, theirs = _listed(run, one), _listed(run, other)
    return mine is not None and theirs is not None and not mine & theirs


def _push_siblings(draft: Draft, key: str) -> None:
    """Move keywords that may not be beside alternatives into each of them (W92)."""
    node, allowed = draft.node, draft.profile.union_siblings or frozenset()
    shared = {
        name: value
        for name, value in node.items()
        if name not in allowed and name not in (key, "nullable", *_ABOUT)
    }
    if shared:
        draft.node = without(node, shared)
        draft.node[key] = [{"allOf": [branch, shared]} for branch in node[key]]


def _branches(draft: Draft, key: str) -> None:
    profile = draft.profile
    made = _compiled(draft, key)
    if profile.has_single_types and any(is_null(schema) for schema, _ in made):
        others = [each for each in made if not is_null(each[0])]
        draft.node |= {"nullable": True} if others else {}
        made = others or made[:1]
    if not made:
        draft.lose("no alternative is left", "No value fits.")
        made = [draft.child({"type": "null"}, key)]
    if profile.has_distinct_first_keys:
        made = distinguished(draft, made)
    draft.node[key] = [schema for schema, _ in made]
    if any(not plan.is_idle for _, plan in made):
        draft.plan.branches = made
    if profile.union_siblings is not None:
        if "default" in draft.node.keys() - profile.union_siblings:
            draft.tell(note("default", draft.node.pop("default")))
        draft.node = described(draft.node, draft.notes)
        draft.notes.clear()
        _collapse(draft, key)


def _compiled(draft: Draft, key: str) -> list[tuple[Any, Plan]]:
    """The alternatives, without those that allow nothing, are duplicates, or were cut off."""
    made: list[tuple[Any, Plan]] = []
    seen: set[str] = set()
    keeps_all = draft.profile.keywords is None
    for at, branch in enumerate(draft.node[key]):
        if branch is not False or keeps_all:
            schema, plan = draft.child(branch, f"{key}[{at}]")
            text = "" if keeps_all else draft.run.text_of(schema)
            if keeps_all or text not in seen:
                seen.add(text)
                made.append((schema, plan))
    whole = [each for each in made if each[1] is not CUT]
    return whole or made


def _collapse(draft: Draft, key: str) -> None:
    """Replace a single alternative by itself, and move disallowed siblings into the first one."""
    node, allowed = draft.node, draft.profile.union_siblings or frozenset()
    branches = node[key]
    beside = without(node, (key,))
    outside = without(beside, allowed)
    if len(branches) == 1 and "$ref" not in branches[0]:
        draft.node = _joined(beside, branches[0], allowed)
    elif outside:
        first = _joined(outside, branches[0], allowed)
        draft.node = {**without(beside, outside), key: [first, *branches[1:]]}


def _joined(outer: Node, inner: Node, allowed: frozenset[str]) -> Node:
    """An alternative with the keywords that applied to all of them."""
    if "anyOf" in inner and not outer.keys() <= allowed:
        first, *others = inner["anyOf"]
        return {**inner, "anyOf": [_joined(outer, first, allowed), *others]}
    said = outer.get("description")
    joined = {**outer, **inner}
    if isinstance(said, str) and "description" in inner and inner["description"] != said:
        joined = described({**joined, "description": said}, [inner["description"]])
    return joined


def distinguished(draft: Draft, made: list[tuple[Any, Plan]]) -> list[tuple[Any, Plan]]:
    """Make alternatives differ in their first property (W15), by reordering or merging them."""
    objects = [
        at for at, (schema, _) in enumerate(made) if as_map(as_map(schema).get("properties"))
    ]
    nodes = [made[at][0] for at in objects]
    if _are_distinct(draft.run, nodes):
        return made
    arranged = _arranged(draft.run, nodes)
    if arranged is not None:
        for at, node in zip(objects, arranged, strict=True):
            made[at] = (node, made[at][1])
        return made
    forms = f"It takes one of these forms: {draft.run.text_of(nodes)}."
    draft.lose("alternatives with the same first property are merged", forms, is_unfaithful=True)
    merged = united(draft.run, nodes)
    merged |= {"required": list(merged["properties"]), "additionalProperties": False}
    compiled = draft.child(merged, "anyOf")
    merged_away = {*objects}
    rest = [each for at, each in enumerate(made) if at not in merged_away]
    return [compiled, *rest]


def _are_distinct(run: Run, nodes: list[Node]) -> bool:
    firsts: dict[str, list[Node]] = {}
    for node in nodes:
        firsts.setdefault(next(iter(node["properties"])), []).append(node)
    return all(len(group) == 1 or _are_tagged(run, name, group) for name, group in firsts.items())


def _are_tagged(run: Run, name: str, nodes: list[Node]) -> bool:
    seen: set[str] = set()
    for node in nodes:
        values = _listed(run, node["properties"][name])
        if values is None or values & seen:
            return False
        seen |= values
    return True


def _arranged(run: Run, nodes: list[Node]) -> list[Node] | None:
    counts = Counter(name for node in nodes for name in node["properties"])
    run.budget.spend_on(8 * counts.total())
    shared = [name for name in nodes[0]["properties"] if counts[name] == len(nodes)]
    for name in shared:
        run.budget.spend()
        if _are_tagged(run, name, nodes):
            return [_first(name, node) for node in nodes]
    arranged: list[Node] = []
    for node in nodes:
        own = next((name for name in node["properties"] if counts[name] == 1), None)
        if own is None:
            return None
        arranged.append(_first(own, node))
    return arranged


def _first(name: str, node: Node) -> Node:
    properties = {name: node["properties"][name], **node["properties"]}
    required = [name, *[each for each in node["required"] if each != name]]
    return {**node, "properties": properties, "required": required}


def is_object_like(run: Run, schema: Any) -> bool:
    """Whether values of a schema are objects, as far as can be determined."""
    pending, seen = [schema], set[int]()
    while pending:
        node = opened(run, pending.pop())
        if id(node) in seen:
            continue
        seen.add(id(node))
        branches = as_list(node.get("anyOf")) or as_list(node.get("oneOf"))
        types = [kind for kind in declared(node) if kind != "null"]
        if not types and branches:
            pending += [each for each in branches if not is_null(each)]
        elif not _is_object(node, types):
            return False
    return True


def _is_object(node: Node, types: list[str]) -> bool:
    if types:
        return types == ["object"]
    if "enum" in node or "const" in node:
        values = as_list(node.get("enum")) or [node.get("const")]
        return all(isinstance(value, dict) for value in values)
    return not is_null(node) and inferred(node) in ([], ["object"])
