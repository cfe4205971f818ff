"""The keywords of objects and arrays, including tuples."""

from __future__ import annotations

from typing import Any

from dragoman.wire.schemas.compilation import Draft, note
from dragoman.wire.schemas.keywords import Node, as_list, as_map, declared, texts_in, without
from dragoman.wire.schemas.types import with_null
from dragoman.wire.schemas.undo import CUT, Plan

_SHAPED = ("properties", "required", "additionalProperties", "patternProperties")
_LISTED = ("items", "prefixItems", "additionalItems")


def stray_step(draft: Draft) -> None:
    """Remove the keywords of objects and arrays where no value is one: they have no effect there.

    Later steps, and targets, take a schema with `properties` for that of an object.
    """
    types = declared(draft.node)
    if draft.profile.keywords is None or not types:
        return
    for kind, keywords in (("object", _SHAPED), ("array", _LISTED)):
        if kind not in types and not draft.node.keys().isdisjoint(keywords):
            draft.node = without(draft.node, keywords)


def object_step(draft: Draft) -> None:
    """Compile the properties, and close the object if the target requires that."""
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
    """Whether an object may have undeclared properties."""
    rest = node.get("additionalProperties")
    if rest is None:
        return "properties" not in node or "patternProperties" in node
    return rest is not False


def _required(draft: Draft) -> frozenset[str]:
    """The required properties; declares them if the target requires that."""
    node = draft.node
    if "required" not in node:
        return frozenset()
    names = texts_in(node["required"])
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
            draft.lose("a required property that is not allowed is left out")
            node["required"] = defined
    return frozenset(names)


def _properties(draft: Draft, required: frozenset[str]) -> None:
    node, profile = draft.node, draft.profile
    if not isinstance(node.get("properties"), dict):
        if "properties" in node:
            draft.lose("properties that are not an object are left out")
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
    """Add a compiled property; makes an optional one nullable if all must be required."""
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
        draft.run.has_undo = True


def _forbid(draft: Draft, names: list[str], required: frozenset[str]) -> None:
    """Drop properties that are never allowed, and describe that."""
    if not required.isdisjoint(names):
        left = required.difference(names)
        draft.node["required"] = [name for name in draft.node["required"] if name in left]
    for name in names:
        if name in required or not draft.profile.is_closed:
            draft.lose("a property that is never allowed is left out", f"No `{name}`.")


def _close(draft: Draft, *, is_empty: bool) -> None:
    """Close an object; that is unfaithful only if it was explicitly open (W14)."""
    node = draft.node
    is_silent = is_empty and draft.place.is_root and "additionalProperties" not in node
    is_meant = is_free(node) and not is_silent
    rest = node.pop("additionalProperties", None)
    patterns = node.pop("patternProperties", None)
    if is_meant and (rest is not None or patterns or is_empty):
        draft.lose("undeclared properties are not supported", is_unfaithful=True)
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
            draft.lose("additionalProperties that are not a schema are left out")
            del node["additionalProperties"]
    if "patternProperties" in node and profile.takes("patternProperties"):
        patterns = as_map(node["patternProperties"])
        node["patternProperties"] = {
            pattern: draft.child(schema, f"patternProperties[{at}]")[0]
            for at, (pattern, schema) in enumerate(patterns.items())
        }


def _tell_others(draft: Draft, rest: Any) -> None:
    """Describe the rules for undeclared properties, if the keyword is unsupported."""
    if rest is True or rest == {}:
        return
    is_unfaithful = rest is not False and not draft.node.get("properties")
    reason = "additionalProperties is moved to the description"
    draft.lose(reason, note("additionalProperties", rest), is_unfaithful=is_unfaithful)


# --- the keywords of arrays, including tuples


def array_step(draft: Draft) -> None:
    """Compile the items. A tuple is written as `prefixItems`, or as a list of any of its items."""
    node, profile = draft.node, draft.profile
    if isinstance(node.get("items"), list):
        node["prefixItems"] = node.pop("items")
        if "additionalItems" in node:
            node["items"] = node.pop("additionalItems")
    if isinstance(node.get("prefixItems"), list):
        if profile.takes("prefixItems"):
            _prefix(draft)
        else:
            _flatten(draft)
            return
    elif "prefixItems" in node:
        draft.lose("prefixItems that are not a list are left out")
        del node["prefixItems"]
    _items(draft)


def _prefix(draft: Draft) -> None:
    made = [
        draft.child(schema, f"prefixItems[{at}]")
        for at, schema in enumerate(draft.node["prefixItems"])
    ]
    draft.node["prefixItems"] = [schema for schema, _ in made]
    draft.plan.prefix = [plan for _, plan in made]


def _items(draft: Draft) -> None:
    node, profile = draft.node, draft.profile
    is_array = "array" in declared(node)
    if node.get("items") is False and profile.keywords is not None:
        _no_more(draft)
    if "items" not in node and "prefixItems" not in node and is_array and profile.needs_items:
        node["items"] = {}  # "array schema missing items", "items: missing field" (W94)
    if "items" in node:
        items = node["items"]
        if isinstance(items, bool) and profile.keywords is None:
            return
        made, plan = draft.child(items, "items")
        node["items"] = made
        draft.plan.items = None if plan.is_idle else plan


def _no_more(draft: Draft) -> None:
    """Express that no items may follow the prefix by `maxItems`."""
    node = draft.node
    del node["items"]
    _limit_items(node, len(as_list(node.get("prefixItems"))))


def _limit_items(node: Node, count: int) -> None:
    most = node.get("maxItems")
    node["maxItems"] = min(most, count) if isinstance(most, int) else count


def _flatten(draft: Draft) -> None:
    """Replace a tuple, if unsupported, by a list of items that fit any of its positions."""
    node = draft.node
    prefix = node.pop("prefixItems")
    rest = node.pop("items", True)
    closed = next((at for at, schema in enumerate(prefix) if schema is False), None)
    if closed is not None:  # no item is possible there, nor after it
        prefix, rest = prefix[:closed], False
    count = len(prefix)
    most = node.get("maxItems")
    is_fixed = rest is False or (isinstance(most, int) and most <= count)
    if is_fixed:
        _limit_items(node, count)
    schemas = [*prefix] if is_fixed else [*prefix, rest]
    unique = draft.run.distinct(schema for schema in schemas if schema is not False) or [{}]
    if len(unique) == 1 and is_fixed:
        node["items"], plan = draft.child(unique[0], "items")
        draft.plan.items = plan
        return
    draft.lose("different schemas for tuple positions are not supported", is_unfaithful=True)
    shown = [schema for schema in unique if schema is not True and schema != {}]
    draft.tell(f"The items, in this order: {draft.run.text_of(prefix)}.")
    made, _ = draft.child(
        {"anyOf": shown} if len(shown) > 1 else shown[0] if shown else {}, "items"
    )
    node["items"] = made
    plans = [draft.child(schema, f"prefixItems[{at}]")[1] for at, schema in enumerate(prefix)]
    draft.plan.prefix = [plan if not plan.is_idle else Plan() for plan in plans]
