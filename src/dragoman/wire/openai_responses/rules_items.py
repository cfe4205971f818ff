"""The view of a request body that the rules work on, and rules for items: ids, pairs, order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

from dragoman.wire.openai_responses.content_types import (
    BUILT_IN_CALLS,
    CALLS,
    MAX_ID_LENGTH,
    PAIRS,
    PREFIXES,
    is_encrypted,
    is_from_client,
    is_plain_id,
    is_reference_or_summary,
    kind_of,
    may_be_answered,
    may_wait,
    pair_key,
)
from dragoman.wire.shared_rules import used_twice, without_partner
from dragoman.wire.target import Target
from dragoman.wire.violations import Found, Object, Placed, Rules, field, listed

_CONTINUES = ("previous_response_id", "conversation", "prompt")
_SPEAKERS = ("user", "system", "developer")
_NOTHING: Object = {}
_CERTAIN = ("message", "reasoning", "function_call")


OPENAI = ("openai", "azure")
"""Providers of the same service."""
LLAMA = ("llama.cpp",)
IDS = ("ids.pattern", "ids.max_length")
VERIFIES = ("state.verifies_items",)
SAMPLING = ("sampling.refused", "sampling.refused_while_thinking")
EFFORTS = ("thinking.form", "thinking.efforts")
STRICT = ("schemas.checks_strict",)


class View:
    """A request body and the lists in it."""

    def __init__(self, body: Object, target: Target) -> None:
        self.body = body
        self.target = target
        self.items = listed(body, "input")

    @cached_property
    def has_hidden_context(self) -> bool:
        """Whether the provider stores items that are not in the body."""
        is_continued = any(map(self.body.get, _CONTINUES))
        return is_continued or any(is_reference_or_summary(item) for _, item in self.items)

    @property
    def is_stored(self) -> bool:
        """Whether the provider stores items, which is the default."""
        return self.body.get("store") is not False

    def of_type(self, *kinds: str) -> Iterator[Placed]:
        """The items of these types."""
        return ((path, item) for path, item in self.items if kind_of(item) in kinds)

    @cached_property
    def runs(self) -> list[list[Placed]]:
        """The items of each of the model's turns."""
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

    def input_parts(self) -> Iterator[Placed]:
        """The parts of input messages."""
        for path, item in self.of_type("message"):
            if item.get("role") in _SPEAKERS:
                yield from listed(item, "content", path)

    def output_parts(self) -> Iterator[Placed]:
        """The parts of assistant messages."""
        for path, item in self.of_type("message"):
            if item.get("role") == "assistant":
                yield from listed(item, "content", path)

    @cached_property
    def functions(self) -> list[Placed]:
        """The declared functions."""
        return [
            (path, tool)
            for path, tool in listed(self.body, "tools")
            if tool.get("type") == "function"
        ]

    @property
    def strict_schemas(self) -> list[tuple[str, Any]]:
        """The strict schemas, if the target checks them."""
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


rule = Rules[View]()


# --- rules for items


@rule("error", "E", LLAMA, "fields.needs_message_type")
def shape_answers_have_their_type(view: View) -> Found:
    """Some hosts require a type on assistant messages."""
    for path, item in view.items if view.target.fields.needs_message_type else ():
        if item.get("role") == "assistant" and item.get("type") != "message":
            yield f"{path}.type", "this host requires the type message"


@rule("error", "E", LLAMA, "thinking.is_plain_text")
def shape_reasoning_is_readable(view: View) -> Found:
    """Some hosts only accept readable reasoning."""
    for path, item in view.of_type("reasoning") if view.target.thinking.is_plain_text else ():
        if not item.get("content"):
            yield f"{path}.content", "this host only accepts reasoning as text"


@rule("error", "S")
def w20_calls_are_paired_on_call_id(view: View) -> Found:
    """Calls and outputs are paired by `call_id`, not by item id."""
    for path, item in view.of_type(*CALLS, CALLS["custom_tool_call"]):
        if not isinstance(item.get("call_id"), str):
            yield f"{path}.call_id", "a call and its output must have the same call_id"


@rule("error", "ER", OPENAI, *VERIFIES)
def w21_item_ids_are_plain(view: View) -> Found:
    """Item ids have at most 64 characters: letters, digits, _ and -."""
    for path, item in view.items if view.target.state.verifies_items else ():
        item_id = item.get("id")
        if isinstance(item_id, str) and not is_plain_id(item_id):
            yield (
                f"{path}.id",
                f"an id must have 1 to {MAX_ID_LENGTH} characters: letters, digits, _ and -",
            )


@rule("error", "ER", OPENAI, *VERIFIES)
def w21_item_ids_have_their_prefix(view: View) -> Found:
    """Item ids have the prefix of their type; leave out the id of a foreign item."""
    for path, item in view.of_type(*_CERTAIN) if view.target.state.verifies_items else ():
        item_id, prefix = item.get("id"), PREFIXES[kind_of(item)]
        is_reference = is_reference_or_summary(item)
        if isinstance(item_id, str) and not is_reference and not item_id.startswith(prefix):
            yield f"{path}.id", f"the id of this item type must begin with {prefix}"


@rule("error", "ER", OPENAI, *VERIFIES)
def w21_reasoning_has_its_id(view: View) -> Found:
    """Reasoning has its id or its encrypted content."""
    for path, item in view.of_type("reasoning") if view.target.state.verifies_items else ():
        if not isinstance(item.get("id"), str) and not is_encrypted(item):
            yield path, "a reasoning item must have its id or its encrypted_content"


@rule("error", "E", OPENAI, *IDS)
def w22_call_ids_are_short(view: View) -> Found:
    """Call ids have at most 64 characters."""
    limit = view.target.ids.max_length
    for path, item in view.items:
        call_id = item.get("call_id")
        if isinstance(call_id, str) and len(call_id) > limit:
            yield f"{path}.call_id", f"the id has {len(call_id)} characters; the maximum is {limit}"


@rule("error", "ET", OPENAI, *VERIFIES)
def w23_reasoning_is_followed(view: View) -> Found:
    """Reasoning is directly followed by the message or call that it led to.

    Stored items are recognised by id: recordings show that a message without one is refused,
    and accepted with `store: false`.
    """
    for run in view.runs if view.target.state.verifies_items else ():
        for (path, item), (_, following) in pairwise([*run, ("", _NOTHING)]):
            if kind_of(item) != "reasoning":
                continue
            if following is _NOTHING:
                yield path, "reasoning must be followed by the item it led to"
            elif view.is_stored and following.get("id") is None:
                yield (
                    path,
                    "the item after this reasoning has no id, so it can't be the one it led to",
                )


@rule("warning", "ET", OPENAI)
def w24_calls_keep_their_reasoning(view: View) -> Found:
    """A call with an item id is preceded by its reasoning, if there was any."""
    if not view.target.state.verifies_items or not any(view.of_type("reasoning")):
        return
    for run in view.runs:
        has_reasoned = False
        for path, item in run:
            has_reasoned = has_reasoned or kind_of(item) == "reasoning"
            if kind_of(item) in CALLS and item.get("id") is not None and not has_reasoned:
                yield f"{path}.id", "the reasoning before this call is missing, if there was any"


@rule("error", "E", OPENAI, *VERIFIES)
def w25_reasoning_is_sealed(view: View) -> Found:
    """With `store: false`, reasoning has its encrypted content."""
    for path, item in view.of_type("reasoning") if view.target.state.verifies_items else ():
        if not view.is_stored and not is_encrypted(item):
            yield path, "with store: false, reasoning must have its encrypted_content"


@rule("error", "E", OPENAI, *VERIFIES)
def w28_item_ids_are_unique(view: View) -> Found:
    """Item ids are unique."""
    seen: set[str] = set()
    for path, item in view.items if view.target.state.verifies_items else ():
        item_id = item.get("id")
        if isinstance(item_id, str) and item_id in seen:
            yield f"{path}.id", "another item has the same id"
        elif isinstance(item_id, str):
            seen.add(item_id)


@rule("error", "E", OPENAI, "turns.pairs_results")
def w29_calls_are_answered(view: View) -> Found:
    """Every call has an output."""
    yield from _unanswered(view, CALLS)


@rule("error", "E", OPENAI, "turns.pairs_results")
def w29_outputs_have_calls(view: View) -> Found:
    """Every output has a call, unless that is stored by the provider."""
    yield from _uncalled(view, CALLS.values())


@rule("warning", "R")
def w29_built_in_calls_are_answered(view: View) -> Found:
    """Every call of a client-run built-in tool has an output."""
    yield from _unanswered(view, BUILT_IN_CALLS)


@rule("warning", "R")
def w29_built_in_outputs_have_calls(view: View) -> Found:
    """Every output of a client-run built-in tool, and every approval, has a call."""
    yield from _uncalled(view, [PAIRS[call] for call in PAIRS if call not in CALLS])


@rule("warning", "R")
def i5_call_ids_are_unique(view: View) -> Found:
    """Every `call_id` belongs to one call."""
    yield from _repeated(view, CALLS, "another call has the same call_id")


@rule("warning", "R")
def i8_calls_have_one_output(view: View) -> Found:
    """Every call has only one output."""
    yield from _repeated(view, CALLS.values(), "another output has the same call_id")


def _keys(view: View, kinds: Iterable[str]) -> list[tuple[str, tuple[bool, str | None]]]:
    """The paths and pairing keys of items of these types."""
    return [(path, pair_key(item)) for path, item in view.of_type(*kinds)]


def _repeated(view: View, kinds: Iterable[str], message: str) -> Found:
    keys = _keys(view, kinds)
    yield from used_twice(((f"{path}.call_id", key[1]) for path, key in keys), message)


def _unanswered(view: View, kinds: Iterable[str]) -> Found:
    if not view.has_hidden_context:
        calls = [(at, pair_key(item)) for at, item in view.of_type(*kinds) if not may_wait(item)]
        answered = [key for _, key in _keys(view, PAIRS.values())]
        yield from without_partner(calls, answered, "no output has this call_id")


def _uncalled(view: View, kinds: Iterable[str]) -> Found:
    if not view.has_hidden_context:
        called = [pair_key(item) for _, item in view.items if may_be_answered(item)]
        yield from without_partner(_keys(view, kinds), called, "no call has this call_id")
