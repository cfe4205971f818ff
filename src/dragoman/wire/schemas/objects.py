"""The keywords of objects."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.keywords import Node, as_list, as_map, declared
from dragoman.wire.schemas.notes import note
from dragoman.wire.schemas.run import Draft
from dragoman.wire.schemas.types import with_null
from dragoman.wire.schemas.undoing import CUT, Plan

_SHAPED = ("properties", "required", "additionalProperties", "patternProperties")


def object_step(draft: Draft) -> None:
    """Compile the properties, and close the object where the target wants that."""
    node = draft.node
    if "object" not in declared(node) and not any(key in node for key in _SHAPED):
        return
    if "object" in declared(node) or "properties" in node:
        draft.place = draft.place._replace(objects=draft.place.objects + 1)
    required = _required(draft)
    _properties(draft, required)
    _others(draft)
    if draft.profile.is_closed and "object" in declared(draft.node):
        draft.node["additionalProperties"] = False
    if draft.profile.requires_all and "object" in declared(draft.node):
        known = draft.node["properties"]
        names = [name for name in draft.node.get("required", ()) if name in known]
        draft.node["required"] = list(dict.fromkeys([*names, *draft.node["properties"]]))


def is_free(node: Node) -> bool:
    """Whether an object may have properties that nobody has named."""
    rest = node.get("additionalProperties")
    if rest is None:
        return "properties" not in node or "patternProperties" in node
    return rest is not False


def _required(draft: Draft) -> frozenset[str]:
    """What is required; what of it nobody has described is described."""
    node = draft.node
    if "required" not in node:
        return frozenset()
    names = [name for name in as_list(node["required"]) if isinstance(name, str)]
    if draft.profile.keywords is not None:
        unique = list(dict.fromkeys(names))
        if unique:
            node["required"] = unique
        elif node["required"] != []:
            del node["required"]
    if draft.profile.defines_required and names:
        known = as_map(node.get("properties"))
        rest = node.get("additionalProperties", True)
        missing = {name: rest for name in names if name not in known and rest is not False}
        if missing:
            node["properties"] = known = {**known, **missing}
        defined = [name for name in names if name in known]
        if len(defined) < len(names):
            draft.lose("a property is required that is not allowed")
            node["required"] = defined
    return frozenset(names)


def _properties(draft: Draft, required: frozenset[str]) -> None:
    node, profile = draft.node, draft.profile
    if not isinstance(node.get("properties"), dict):
        if "properties" in node:
            draft.lose("properties that are no object are left out")
            del node["properties"]
        if profile.is_closed and "object" in declared(node):
            _close(draft, is_empty=True)
            node["properties"] = {}
        return
    if profile.is_closed:
        _close(draft, is_empty=False)
    made: Node = {}
    forbidden: list[str] = []
    for at, (name, schema) in enumerate(node["properties"].items()):
        if schema is False and profile.keywords is not None:
            forbidden.append(name)
        else:
            child = draft.child(schema, f"properties[{at}]", is_optional=name not in required)
            _keep(draft, made, name, child, is_required=name in required)
    if forbidden:
        _forbid(draft, forbidden, required)
    node["properties"] = made


def _keep(
    draft: Draft, made: Node, name: str, child: tuple[Any, Plan], *, is_required: bool
) -> None:
    """Take a compiled property, as one that may be null where it was one that may be absent."""
    profile, (schema, plan) = draft.profile, child
    if plan is CUT and not is_required and profile.keywords is not None:
        return
    made[name] = schema
    if not plan.is_idle:
        draft.plan.members[name] = plan
    original = draft.node["properties"][name]
    if not is_required and profile.requires_all and not draft.run.fits(original, None):
        made[name] = with_null(schema)
        draft.plan.nulls.add(name)
        draft.run.acts = True


def _forbid(draft: Draft, names: list[str], required: frozenset[str]) -> None:
    """Tell of properties that are never allowed; they are left out."""
    if not required.isdisjoint(names):
        left = required.difference(names)
        draft.node["required"] = [name for name in draft.node["required"] if name in left]
    for name in names:
        if name in required or not draft.profile.is_closed:
            draft.lose("a property that is never allowed is left out", f"No `{name}`.")


def _close(draft: Draft, *, is_empty: bool) -> None:
    """Closing what was meant to be open bends it; saying nothing is not meaning that (W14)."""
    node = draft.node
    is_silent = is_empty and draft.place.is_root and "additionalProperties" not in node
    is_meant = is_free(node) and not is_silent
    rest = node.pop("additionalProperties", None)
    patterns = node.pop("patternProperties", None)
    if is_meant and (rest is not None or patterns or is_empty):
        draft.lose("properties with names of their own can't be asked for", bends=True)
        for keyword, value in (("patternProperties", patterns), ("additionalProperties", rest)):
            if value:
                draft.tell(note(keyword, value))


def _others(draft: Draft) -> None:
    node, profile = draft.node, draft.profile
    if "additionalProperties" in node:
        if not profile.takes("additionalProperties"):
            _tell_others(draft, node.pop("additionalProperties"))
        elif isinstance(node["additionalProperties"], dict):
            made, plan = draft.child(node["additionalProperties"], "additionalProperties")
            node["additionalProperties"] = made
            draft.plan.rest = None if plan.is_idle else plan
        elif not isinstance(node["additionalProperties"], bool):
            draft.lose("additionalProperties that are no schema are left out")
            del node["additionalProperties"]
    if "patternProperties" in node and profile.takes("patternProperties"):
        patterns = as_map(node["patternProperties"])
        node["patternProperties"] = {
            pattern: draft.child(schema, f"patternProperties[{at}]")[0]
            for at, (pattern, schema) in enumerate(patterns.items())
        }


def _tell_others(draft: Draft, rest: Any) -> None:
    """What is said of further properties, where there is no keyword for it."""
    if rest is True or rest == {}:
        return
    bends = rest is not False and not draft.node.get("properties")
    reason = "what is said of other properties is told in words"
    draft.lose(reason, note("additionalProperties", rest), bends=bends)
