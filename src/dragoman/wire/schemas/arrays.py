"""The keywords of arrays; tuples among them."""

from __future__ import annotations

from dragoman.wire.schemas.keywords import as_list, declared
from dragoman.wire.schemas.run import Draft
from dragoman.wire.schemas.undoing import Plan


def array_step(draft: Draft) -> None:
    """Compile the items. A tuple is written as of 2020, or as a list of any of its items."""
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
        draft.lose("prefixItems that are no list are left out")
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
    """No items beyond the prefix: said by their number."""
    node = draft.node
    del node["items"]
    count = len(as_list(node.get("prefixItems")))
    most = node.get("maxItems")
    node["maxItems"] = min(most, count) if isinstance(most, int) else count


def _flatten(draft: Draft) -> None:
    """A tuple where there are none: items that fit any of its places."""
    node = draft.node
    prefix = node.pop("prefixItems")
    rest = node.pop("items", True)
    closed = next((at for at, schema in enumerate(prefix) if schema is False), None)
    if closed is not None:  # nothing can stand there, nor after it
        prefix, rest = prefix[:closed], False
    count = len(prefix)
    most = node.get("maxItems")
    is_fixed = rest is False or (isinstance(most, int) and most <= count)
    if is_fixed:
        node["maxItems"] = min(most, count) if isinstance(most, int) else count
    schemas = [*prefix] if is_fixed else [*prefix, rest]
    unique = draft.run.distinct(schema for schema in schemas if schema is not False) or [{}]
    if len(unique) == 1 and is_fixed:
        node["items"], plan = draft.child(unique[0], "items")
        draft.plan.items = plan
        return
    draft.lose("a place of a tuple can't have a schema of its own", bends=True)
    shown = [schema for schema in unique if schema is not True and schema != {}]
    draft.tell(f"The items, in this order: {draft.run.text_of(prefix)}.")
    made, _ = draft.child(
        {"anyOf": shown} if len(shown) > 1 else shown[0] if shown else {}, "items"
    )
    node["items"] = made
    plans = [draft.child(schema, f"prefixItems[{at}]")[1] for at, schema in enumerate(prefix)]
    draft.plan.prefix = [plan if not plan.is_idle else Plan() for plan in plans]
