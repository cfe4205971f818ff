"""What OpenAI's Responses API demands of items: their ids, their pairs and their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from dragoman.wire.openai_responses.itemkinds import (
    APPROVAL,
    APPROVED,
    BUILT_IN_CALLS,
    CALLS,
    LONGEST_ID,
    PREFIXES,
    is_plain_id,
    is_sealed,
    kind_of,
    may_wait,
    pair_of,
    stands_for_more,
)
from dragoman.wire.openai_responses.view import View
from dragoman.wire.violations import Found, Object

_NOTHING: Object = {}
_OUTPUTS = (*CALLS.values(), *BUILT_IN_CALLS.values())
_CERTAIN = ("message", "reasoning", "function_call")


def shape_answers_have_their_type(view: View) -> Found:
    """Some hosts know what the assistant said by its type only."""
    for path, item in view.items if view.target.types_messages else ():
        if item.get("role") == "assistant" and item.get("type") != "message":
            yield f"{path}.type", "this host wants to read that it is a message"


def shape_reasoning_is_readable(view: View) -> Found:
    """Some hosts take reasoning only if they can read it."""
    for path, item in view.of_type("reasoning") if view.target.reads_reasoning else ():
        if not item.get("content"):
            yield f"{path}.content", "this host takes reasoning as a text only"


def w20_calls_are_paired_on_call_id(view: View) -> Found:
    """A call has the id that its output names; the item's own id pairs nothing."""
    for path, item in view.of_type(*CALLS, CALLS["custom_tool_call"]):
        if not isinstance(item.get("call_id"), str):
            yield f"{path}.call_id", "a call and its output need the same call_id"


def w21_item_ids_are_plain(view: View) -> Found:
    """Ids of items have letters, digits, _ and -, 64 at the most."""
    for path, item in view.items if view.target.verifies_items else ():
        item_id = item.get("id")
        if isinstance(item_id, str) and not is_plain_id(item_id):
            yield f"{path}.id", f"an id has 1 to {LONGEST_ID} letters, digits, _ and -"


def w21_item_ids_have_their_prefix(view: View) -> Found:
    """And begin as those of their type do; of a foreign item, leave the id out."""
    for path, item in view.of_type(*_CERTAIN) if view.target.verifies_items else ():
        item_id, prefix = item.get("id"), PREFIXES[kind_of(item)]
        is_reference = stands_for_more(item)
        if isinstance(item_id, str) and not is_reference and not item_id.startswith(prefix):
            yield f"{path}.id", f"the id of such an item begins with {prefix}"


def w21_reasoning_has_its_id(view: View) -> Found:
    """Reasoning that is not sealed can't be sent without the id that it came with."""
    for path, item in view.of_type("reasoning") if view.target.verifies_items else ():
        if not isinstance(item.get("id"), str) and not is_sealed(item):
            yield path, "a reasoning item needs its id or its encrypted content"


def w22_call_ids_are_short(view: View) -> Found:
    """Ids of calls have at most 64 characters."""
    limit = view.target.tool_id_length
    for path, item in view.items:
        call_id = item.get("call_id")
        if isinstance(call_id, str) and len(call_id) > limit:
            yield f"{path}.call_id", f"the id has {len(call_id)} characters, {limit} are allowed"


def w23_reasoning_is_followed(view: View) -> Found:
    """Reasoning stands right before what it led to: a message or a call.

    Where items are stored, the provider knows what that was by its id. A message without one is
    refused, as a recording shows; with `store: false` it is taken, as others do.
    """
    for run in view.runs if view.target.verifies_items else ():
        for (path, item), (_, following) in pairwise([*run, ("", _NOTHING)]):
            if kind_of(item) != "reasoning":
                continue
            if following is _NOTHING:
                yield path, "what this reasoning led to does not follow it"
            elif view.is_stored and following.get("id") is None:
                yield path, "what follows this reasoning has no id, so it is not what it led to"


def w24_calls_keep_their_reasoning(view: View) -> Found:
    """A call's item id asks for the reasoning that led to it; not every call had some."""
    if not view.target.verifies_items or not any(view.of_type("reasoning")):
        return
    for run in view.runs:
        has_reasoned = False
        for path, item in run:
            has_reasoned = has_reasoned or kind_of(item) == "reasoning"
            if kind_of(item) in CALLS and item.get("id") is not None and not has_reasoned:
                yield f"{path}.id", "if the model reasoned before this call, that is missing"


def w25_reasoning_is_sealed(view: View) -> Found:
    """What is not stored can't be looked up: reasoning needs its encrypted content."""
    for path, item in view.of_type("reasoning") if view.target.verifies_items else ():
        if not view.is_stored and not is_sealed(item):
            yield path, "with store: false, reasoning needs its encrypted_content"


def w28_item_ids_are_unique(view: View) -> Found:
    """No item stands in a request twice."""
    seen: set[str] = set()
    for path, item in view.items if view.target.verifies_items else ():
        item_id = item.get("id")
        if isinstance(item_id, str) and item_id in seen:
            yield f"{path}.id", "another item has this id"
        elif isinstance(item_id, str):
            seen.add(item_id)


def w29_calls_are_answered(view: View) -> Found:
    """Every call has its output."""
    yield from _unanswered(view, CALLS)


def w29_outputs_have_calls(view: View) -> Found:
    """And every output its call, unless that is with the provider."""
    yield from _uncalled(view, CALLS)


def w29_built_in_calls_are_answered(view: View) -> Found:
    """So have calls of the provider's tools that the client carries out."""
    yield from _unanswered(view, BUILT_IN_CALLS)


def w29_built_in_outputs_have_calls(view: View) -> Found:
    """And their outputs, and approvals."""
    yield from _uncalled(view, {**BUILT_IN_CALLS, APPROVAL: APPROVED})


def i5_call_ids_are_unique(view: View) -> Found:
    """No two calls share the id that pairs them with their outputs."""
    yield from _used_twice(view, CALLS, "another call has this call_id")


def i8_calls_have_one_output(view: View) -> Found:
    """No call has two outputs."""
    yield from _used_twice(view, CALLS.values(), "another output answers this call")


def _used_twice(view: View, kinds: Iterable[str], message: str) -> Found:
    seen: set[tuple[bool, str | None]] = set()
    for path, item in view.of_type(*kinds):
        key = _key(item)
        if key in seen:
            yield f"{path}.call_id", message
        elif key[1] is not None:
            seen.add(key)


def _unanswered(view: View, pairs: Mapping[str, str]) -> Found:
    if view.has_hidden_context:
        return
    answered = {_key(item) for _, item in view.of_type(*_OUTPUTS)}
    for path, item in view.of_type(*pairs):
        if _key(item) not in answered and not may_wait(item):
            yield path, "no output answers this call"


def _uncalled(view: View, pairs: Mapping[str, str]) -> Found:
    if view.has_hidden_context:
        return
    called = {_key(item) for _, item in view.of_type(*CALLS, *BUILT_IN_CALLS, APPROVAL)}
    for path, item in view.of_type(*pairs.values()):
        if _key(item) not in called:
            yield path, "there is no such call"


def _key(item: Object) -> tuple[bool, str | None]:
    """The same for a call and its output, whatever their types."""
    kind = kind_of(item)
    return kind in (APPROVAL, APPROVED), pair_of(item, kind)
