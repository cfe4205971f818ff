"""A request's body as its rules read it, and the rules on items: ids, pairs and order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

from dragoman.wire.openai_responses.content_types import (
    BUILT_IN_CALLS,
    CALLS,
    LONGEST_ID,
    PAIRS,
    PREFIXES,
    is_encrypted,
    is_from_client,
    is_plain_id,
    kind_of,
    may_wait,
    pair_key,
    stands_for_more,
)
from dragoman.wire.shared_rules import used_twice, without_partner
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, Placed, field, listed

_CONTINUES = ("previous_response_id", "conversation", "prompt")
_SPEAKERS = ("user", "system", "developer")
_NOTHING: Object = {}
_CERTAIN = ("message", "reasoning", "function_call")


class View:
    """A body, and the lists in it."""

    def __init__(self, body: Object, target: Target) -> None:
        self.body = body
        self.target = target
        self.items = listed(body, "input")

    @cached_property
    def has_hidden_context(self) -> bool:
        """Whether the provider holds items that the body does not show."""
        is_continued = any(map(self.body.get, _CONTINUES))
        return is_continued or any(stands_for_more(item) for _, item in self.items)

    @property
    def is_stored(self) -> bool:
        """Whether the provider keeps items; it does unless it is told otherwise."""
        return self.body.get("store") is not False

    def of_type(self, *kinds: str) -> Iterator[Placed]:
        """The items of these types."""
        return ((path, item) for path, item in self.items if kind_of(item) in kinds)

    @cached_property
    def runs(self) -> list[list[Placed]]:
        """The items of the model's turns, each turn by itself."""
        runs: list[list[Placed]] = []
        goes_on = False
        for path, item in self.items:
            if is_from_client(item):
                goes_on = False
                continue
            if not goes_on:
                runs.append([])
            runs[-1].append((path, item))
            goes_on = True
        return runs

    def said(self) -> Iterator[Placed]:
        """The parts of what is said to the model."""
        for path, item in self.of_type("message"):
            if item.get("role") in _SPEAKERS:
                yield from listed(item, "content", path)

    def answers(self) -> Iterator[Placed]:
        """The parts of what the model said."""
        for path, item in self.of_type("message"):
            if item.get("role") == "assistant":
                yield from listed(item, "content", path)

    @cached_property
    def functions(self) -> list[Placed]:
        """The functions on offer."""
        return [
            (path, tool)
            for path, tool in listed(self.body, "tools")
            if tool.get("type") == "function"
        ]

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The schemas that are to be followed strictly, where that is looked at."""
        if not self.target.schemas.checks_strict:
            return []
        found = [
            (f"{path}.parameters", tool["parameters"])
            for path, tool in self.functions
            if tool.get("strict") is True and isinstance(tool.get("parameters"), Mapping)
        ]
        output = field(field(self.body, "text"), "format")
        if output.get("strict") is True and output.get("schema") is not None:
            found.append(("text.format.schema", output["schema"]))
        return found


# --- the rules on items


def shape_answers_have_their_type(view: View) -> Found:
    """Some hosts know what the assistant said by its type only."""
    for path, item in view.items if view.target.fields.needs_message_type else ():
        if item.get("role") == "assistant" and item.get("type") != "message":
            yield f"{path}.type", "this host wants to read that it is a message"


def shape_reasoning_is_readable(view: View) -> Found:
    """Some hosts take reasoning only if they can read it."""
    for path, item in view.of_type("reasoning") if view.target.thinking.is_plain_text else ():
        if not item.get("content"):
            yield f"{path}.content", "this host takes reasoning as a text only"


def w20_calls_are_paired_on_call_id(view: View) -> Found:
    """A call has the id that its output names; the item's own id pairs nothing."""
    for path, item in view.of_type(*CALLS, CALLS["custom_tool_call"]):
        if not isinstance(item.get("call_id"), str):
            yield f"{path}.call_id", "a call and its output need the same call_id"


def w21_item_ids_are_plain(view: View) -> Found:
    """Ids of items have letters, digits, _ and -, 64 at the most."""
    for path, item in view.items if view.target.state.verifies_items else ():
        item_id = item.get("id")
        if isinstance(item_id, str) and not is_plain_id(item_id):
            yield f"{path}.id", f"an id has 1 to {LONGEST_ID} letters, digits, _ and -"


def w21_item_ids_have_their_prefix(view: View) -> Found:
    """And begin as those of their type do; of a foreign item, leave the id out."""
    for path, item in view.of_type(*_CERTAIN) if view.target.state.verifies_items else ():
        item_id, prefix = item.get("id"), PREFIXES[kind_of(item)]
        is_reference = stands_for_more(item)
        if isinstance(item_id, str) and not is_reference and not item_id.startswith(prefix):
            yield f"{path}.id", f"the id of such an item begins with {prefix}"


def w21_reasoning_has_its_id(view: View) -> Found:
    """Reasoning that is not sealed can't be sent without the id that it came with."""
    for path, item in view.of_type("reasoning") if view.target.state.verifies_items else ():
        if not isinstance(item.get("id"), str) and not is_encrypted(item):
            yield path, "a reasoning item needs its id or its encrypted content"


def w22_call_ids_are_short(view: View) -> Found:
    """Ids of calls have at most 64 characters."""
    limit = view.target.ids.max_length
    for path, item in view.items:
        call_id = item.get("call_id")
        if isinstance(call_id, str) and len(call_id) > limit:
            yield f"{path}.call_id", f"the id has {len(call_id)} characters, {limit} are allowed"


def w23_reasoning_is_followed(view: View) -> Found:
    """Reasoning stands right before what it led to: a message or a call.

    Where items are stored, the provider knows what that was by its id. A message without one is
    refused, as a recording shows; with `store: false` it is taken, as others do.
    """
    for run in view.runs if view.target.state.verifies_items else ():
        for (path, item), (_, following) in pairwise([*run, ("", _NOTHING)]):
            if kind_of(item) != "reasoning":
                continue
            if following is _NOTHING:
                yield path, "what this reasoning led to does not follow it"
            elif view.is_stored and following.get("id") is None:
                yield path, "what follows this reasoning has no id, so it is not what it led to"


def w24_calls_keep_their_reasoning(view: View) -> Found:
    """A call's item id asks for the reasoning that led to it; not every call had some."""
    if not view.target.state.verifies_items or not any(view.of_type("reasoning")):
        return
    for run in view.runs:
        has_reasoned = False
        for path, item in run:
            has_reasoned = has_reasoned or kind_of(item) == "reasoning"
            if kind_of(item) in CALLS and item.get("id") is not None and not has_reasoned:
                yield f"{path}.id", "if the model reasoned before this call, that is missing"


def w25_reasoning_is_sealed(view: View) -> Found:
    """What is not stored can't be looked up: reasoning needs its encrypted content."""
    for path, item in view.of_type("reasoning") if view.target.state.verifies_items else ():
        if not view.is_stored and not is_encrypted(item):
            yield path, "with store: false, reasoning needs its encrypted_content"


def w28_item_ids_are_unique(view: View) -> Found:
    """No item stands in a request twice."""
    seen: set[str] = set()
    for path, item in view.items if view.target.state.verifies_items else ():
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
    yield from _uncalled(view, CALLS.values())


def w29_built_in_calls_are_answered(view: View) -> Found:
    """So have calls of the provider's tools that the client carries out."""
    yield from _unanswered(view, BUILT_IN_CALLS)


def w29_built_in_outputs_have_calls(view: View) -> Found:
    """And their outputs, and approvals."""
    yield from _uncalled(view, [PAIRS[call] for call in PAIRS if call not in CALLS])


def i5_call_ids_are_unique(view: View) -> Found:
    """No two calls share the id that pairs them with their outputs."""
    yield from _repeated(view, CALLS, "another call has this call_id")


def i8_calls_have_one_output(view: View) -> Found:
    """No call has two outputs."""
    yield from _repeated(view, CALLS.values(), "another output answers this call")


def _keys(view: View, kinds: Iterable[str]) -> list[tuple[str, tuple[bool, str | None]]]:
    """What pairs items of these kinds with others, by the path of the item."""
    return [(path, pair_key(item)) for path, item in view.of_type(*kinds)]


def _repeated(view: View, kinds: Iterable[str], message: str) -> Found:
    keys = _keys(view, kinds)
    yield from used_twice(((f"{path}.call_id", key[1]) for path, key in keys), message)


def _unanswered(view: View, kinds: Iterable[str]) -> Found:
    if not view.has_hidden_context:
        calls = [(at, pair_key(item)) for at, item in view.of_type(*kinds) if not may_wait(item)]
        answered = [key for _, key in _keys(view, PAIRS.values())]
        yield from without_partner(calls, answered, "no output answers this call")


def _uncalled(view: View, kinds: Iterable[str]) -> Found:
    if not view.has_hidden_context:
        called = [key for _, key in _keys(view, PAIRS)]
        yield from without_partner(_keys(view, kinds), called, "there is no such call")
