"""Repairs for this dialect only: fitting steps, and repairs of items that a provider verifies.

Histories get truncated, mixed and edited. Invalid ids are removed where they are optional (W21,
W28). Calls and outputs are paired (W29). Reasoning without the item that followed it is left out,
and items that lost their reasoning lose their id (W23, W24, W25). Everything left out is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Part, Text
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolDefinition
from dragoman.wire.fitting.pairing import UNKNOWN
from dragoman.wire.fitting.settings import has_hidden_context, sampling_within
from dragoman.wire.fitting.steps import Step, unless_same, with_changed_parts
from dragoman.wire.losses import Action, Loss, Note, Repair
from dragoman.wire.openai_responses.argument_names import has_long_names, with_short_names
from dragoman.wire.openai_responses.content_types import (
    APPROVAL,
    CALLS,
    PAIRS,
    PREFIXES,
    is_encrypted,
    is_from_client,
    is_plain_id,
    kind_of,
    may_be_answered,
    may_wait,
    pair_key,
)
from dragoman.wire.openai_responses.dialect import NAME, TARGET
from dragoman.wire.openai_responses.forms import without
from dragoman.wire.openai_responses.layout_writer import MessageWriter
from dragoman.wire.openai_responses.settings import is_stored
from dragoman.wire.openai_responses.tools import is_own
from dragoman.wire.openai_responses.tools_client import placeholder_output
from dragoman.wire.openai_settings import SAMPLING_RANGES
from dragoman.wire.openai_strict_schemas import is_refused_strict
from dragoman.wire.overlay import fields_of
from dragoman.wire.target import Target

# --- fitting steps


def with_strict_schemas(request: Request, target: Target, notes: list[Note]) -> Request:
    """Adapt schemas of this dialect to strict mode; otherwise they are sent unchanged (W14)."""
    tools = list(request.tools)
    for index, tool in enumerate(tools):
        if (
            isinstance(tool, ToolDefinition)
            and is_own(tool)
            and is_refused_strict(tool, target, TARGET)
        ):
            tools[index] = tool.replace(origin=None)  # encoded like another dialect's
            reason = "the schema is adapted to strict mode"
            notes.append(Repair(f"tools[{index}].parameters", "W14", "retyped", reason))
    made = unless_same(tools, request.tools)
    return request if made is request.tools else request.replace_trusted(tools=made)


def with_own_text_types(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Give texts the type that matches their role; lenient hosts accept others (W30)."""
    messages = list(request.messages)
    for index, message in enumerate(request.messages):
        own_type = "output_text" if message.role is Role.ASSISTANT else "input_text"
        for place, part in enumerate(message.parts):
            if part.extras is EMPTY or type(part) is not Text:  # the most common case
                continue
            form = part.extras.get(NAME)
            if isinstance(form, dict) and form.get("type", own_type) != own_type:
                parts = list(messages[index].parts)
                parts[place] = part.replace(extras={**part.extras, NAME: without(form, "type")})
                messages[index] = message.replace_unchecked(parts=tuple(parts))
                path = f"messages[{index}].parts[{place}]"
                notes.append(
                    Repair(path, "W30", "retyped", "the text type is changed to match the role")
                )
    made = unless_same(messages, request.messages)
    return request if made is request.messages else request.replace_trusted(messages=made)


def with_short_argument_names(request: Request, _target: Target, notes: list[Note]) -> Request:
    """Shorten property names in arguments that are too long (W39)."""

    def shortened(part: AnyPart, path: str) -> AnyPart:
        if not _has_long_names(part):
            return part
        notes.append(Loss(f"{path}.arguments", "a property name is shortened (W39)"))
        return part.replace_unchecked(raw=with_short_names(part.raw_arguments), input=None)

    return request.replace_trusted(messages=with_changed_parts(request.messages, shortened))


def _has_long_names(part: Part) -> TypeGuard[ToolCall]:
    if type(part) is not ToolCall or part.kind != "function":
        return False
    return has_long_names(part.raw_arguments)


STEPS = (
    sampling_within(SAMPLING_RANGES),
    Step(with_strict_schemas, ("schemas.checks_strict",), lambda _, to: to.schemas.checks_strict),
    Step(with_own_text_types, ("state.verifies_items",), lambda _, to: to.state.verifies_items),
    Step(
        with_short_argument_names,
        ("tools.limits_argument_names",),
        lambda seen, to: to.tools.limits_argument_names and bool(seen.calls),
        finds=lambda seen, _: any(map(_has_long_names, seen.calls)),
    ),
)
"""Fitting steps for this dialect only."""


# --- repairs of the encoded items

_REASONING = "reasoning"
_OUTPUTS = frozenset(PAIRS.values())
# Item types whose id is optional (according to the SDK's types).
_OPTIONAL = frozenset(
    {"message", "compaction", "tool_search_call", "tool_search_output", "shell_call",
     "apply_patch_call", *CALLS, *_OUTPUTS}
) - {"local_shell_call_output"}  # fmt: skip
_AFTER_REASONING = frozenset({"message", *CALLS})
_CUT = "reasoning without the item that followed it is left out (W23)"
_NOT_ENCRYPTED = "reasoning that is neither stored nor encrypted is left out (W25)"
_NEEDS_ID = "an item that requires a valid id is left out (W21)"
_DUPLICATE = "a duplicate item is left out (W28)"
_NO_REASONING = "an item that requires its missing reasoning is left out (W24)"
_WITHOUT_OUTPUT = "a call without an output is left out (W29)"
_WITHOUT_CALL = "an output without its call is left out (W29)"


def repaired_items(request: Request, writing: MessageWriter) -> list[Any]:
    """The encoded items of a request, repaired for the target."""
    if writing.target.fields.needs_message_type:
        _add_types(request, writing)
    if not writing.target.state.verifies_items:
        return writing.items
    return _ItemRepairs(request, writing).items()


def _add_types(request: Request, writing: MessageWriter) -> None:
    """Add the type to assistant messages, which some hosts require."""
    for index, item in enumerate(writing.items):
        is_assistant = isinstance(item, dict) and item.get("role") == "assistant"
        if is_assistant and "content" in item and "type" not in item:
            writing.items[index] = {"type": "message", **item}
            place = writing.places[index]
            if writing.target.owns(request.messages[place.message]):
                path = f"messages[{place.message}].parts[{place.start}]"
                writing.repair(path, "shape", "added", "the item type is added")


class _ItemRepairs:
    """One pass over the items of a request."""

    def __init__(self, request: Request, writing: MessageWriter) -> None:
        self._request = request
        self._writing = writing
        self._items, self._places = writing.items, writing.places
        self._kinds = [kind_of(item) if isinstance(item, dict) else "" for item in self._items]
        self._is_stored = is_stored(request, fields_of(request.extras, NAME))
        self._dropped: set[int] = set()
        target = writing.target
        forgets = target.thinking.sent_back == "never"
        self._has_reasoned = {
            index
            for index, message in enumerate(request.messages)
            if forgets or (message.usage and message.usage.thinking)
        }
        """Messages that are known to have begun with reasoning."""

    def items(self) -> list[Any]:
        """The repaired items."""
        self._check_ids()
        unanswered = self._check_pairs()
        if _REASONING in self._kinds or self._has_reasoned:
            for turn in self._turns():
                self._check_turn(turn)
            if self._dropped:
                unanswered = self._check_pairs()
        return list(self._left(unanswered)) if self._dropped or unanswered else self._items

    def _is_kept(self, index: int) -> bool:
        """Whether an item belongs to a message of this dialect that is sent unchanged."""
        target = self._writing.target
        if not target.keeps_own_messages:
            return False
        return target.owns(self._request.messages[self._places[index].message])

    def _drop(self, index: int, reason: str) -> None:
        if self._is_kept(index):
            return
        self._dropped.add(index)
        place = self._places[index]
        for part in range(place.start, place.end):
            self._writing.lose(f"messages[{place.message}].parts[{part}]", reason)

    def _repaired(self, index: int, rule: str, action: Action, reason: str) -> None:
        place = self._places[index]
        path = f"messages[{place.message}].parts[{place.start}]"
        self._writing.repair(path, rule, action, reason)

    # --- ids

    def _check_ids(self) -> None:
        seen: set[str] = set()
        for index, kind in enumerate(self._kinds):
            if not kind:
                continue
            item = self._items[index]
            item_id = item.get("id")
            if kind == _REASONING and not (self._is_stored or is_encrypted(item)):
                self._drop(index, _NOT_ENCRYPTED)
            elif type(item_id) is not str:
                if kind == _REASONING and not is_encrypted(item):
                    self._drop(index, _NEEDS_ID)
            elif item_id in seen:
                self._strip(index, _DUPLICATE, "W28")
            elif not is_plain_id(item_id) or not item_id.startswith(PREFIXES.get(kind, "")):
                self._strip(index, _NEEDS_ID, "W21")
            else:
                seen.add(item_id)

    def _strip(self, index: int, reason: str, rule: str) -> None:
        """Remove the id of an item, or the item if its id is required."""
        item, kind = self._items[index], self._kinds[index]
        if kind not in _OPTIONAL or self._is_kept(index):
            self._drop(index, reason)
            return
        rest = {key: value for key, value in item.items() if key != "id"}
        if kind == "message" and item.get("role") == "assistant":
            rest.pop("status", None)  # only messages with an id have a status
            rest["content"] = _plain(rest.get("content"))
        self._items[index] = rest
        self._repaired(index, rule, "dropped", "the item id is removed")

    # --- calls and outputs

    def _check_pairs(self) -> frozenset[int]:
        """Drop unpaired outputs and calls; returns the calls that will get a placeholder output."""
        unanswered, uncalled = self._unpaired()
        messages = self._request.messages
        if uncalled and not has_hidden_context(self._request, messages, self._writing.target):
            for index in uncalled:
                self._drop(index, _WITHOUT_CALL)
        for index in unanswered:
            if self._unknown_output(index) is None or pair_key(self._items[index])[1] is None:
                self._drop(index, _WITHOUT_OUTPUT)
        return frozenset(unanswered) - self._dropped

    def _unpaired(self) -> tuple[list[int], list[int]]:
        """The calls that require an output and have none, and the outputs without a call."""
        calls: dict[int, tuple[bool, str | None]] = {}
        outputs: dict[int, tuple[bool, str | None]] = {}
        for index, kind in enumerate(self._kinds):
            is_call = kind in PAIRS
            if (is_call or kind in _OUTPUTS) and index not in self._dropped:
                (calls if is_call else outputs)[index] = pair_key(self._items[index])
        called = set(calls.values()) | self._other_calls()
        answered = set(outputs.values())
        unanswered = [index for index in calls if calls[index] not in answered]
        uncalled = [index for index in outputs if outputs[index] not in called]
        return [index for index in unanswered if self._wants_output(index)], uncalled

    def _other_calls(self) -> set[tuple[bool, str | None]]:
        """The keys of items that an output may belong to, and that don't require one."""
        return {
            pair_key(item)
            for item, kind in zip(self._items, self._kinds, strict=True)
            if kind and kind not in PAIRS and may_be_answered(item)
        }

    def _wants_output(self, index: int) -> bool:
        """Whether a call requires an output; approval requests don't."""
        if self._kinds[index] == APPROVAL or may_wait(self._items[index]):
            return False
        return not self._is_kept(index)

    def _left(self, unanswered: frozenset[int]) -> Iterator[Any]:
        """The remaining items, with placeholder outputs after the turn of unpaired calls."""
        made: list[dict[str, Any]] = []
        for index, item in enumerate(self._items):
            if index in self._dropped:
                continue
            if made and self._is_from_client(index):
                yield from made
                made = []
            yield item
            if index in unanswered:
                made += filter(None, [self._unknown_output(index)])
                self._repaired(
                    index, "I9", "added", "a result is added that says the outcome is unknown"
                )
        yield from made

    def _unknown_output(self, index: int) -> dict[str, Any] | None:
        """A placeholder output that says the outcome is unknown; None if the type can't hold it."""
        item, kind = self._items[index], self._kinds[index]
        if kind not in CALLS:
            return placeholder_output(item, UNKNOWN)
        return {"type": CALLS[kind], "call_id": item.get("call_id"), "output": UNKNOWN}

    # --- reasoning

    def _is_from_client(self, index: int) -> bool:
        return bool(self._kinds[index]) and is_from_client(self._items[index])

    def _turns(self) -> Iterator[list[int]]:
        """The indexes of the model's items, message by message.

        Reasoning and the item that follows it are always in the same message.
        """
        turn: list[int] = []
        for index, place in enumerate(self._places):
            is_clients = self._is_from_client(index)
            if turn and (is_clients or place.message != self._places[turn[0]].message):
                yield turn
                turn = []
            if not is_clients:
                turn.append(index)
        if turn:
            yield turn

    def _check_turn(self, turn: list[int]) -> None:
        """Drop reasoning without its following item, and ids that require missing reasoning."""
        # Built-in tool calls may come first in a response, with or without reasoning (recorded).
        lacks_reasoning = (
            self._places[turn[0]].message in self._has_reasoned
            and self._kinds[turn[0]] in _AFTER_REASONING
        )
        chain: list[int] = []
        for index in turn:
            if self._kinds[index] == _REASONING:
                chain.append(index)
            elif index not in self._dropped:
                if chain:
                    lacks_reasoning = not self._follows_reasoning(index, chain)
                    if lacks_reasoning:
                        self._cut(chain)
                    chain = []
                if lacks_reasoning and self._has_id(index):
                    self._strip(index, _NO_REASONING, "W24")
        self._cut(chain)

    def _follows_reasoning(self, index: int, chain: list[int]) -> bool:
        """Whether an item can be the one that followed all of the reasoning before it."""
        is_whole = self._dropped.isdisjoint(chain)
        return is_whole and (self._has_id(index) or not self._is_stored)

    def _has_id(self, index: int) -> bool:
        return bool(self._kinds[index]) and self._items[index].get("id") is not None

    def _cut(self, chain: list[int]) -> None:
        for index in chain:
            if index not in self._dropped:
                self._drop(index, _CUT)


def _plain(content: Any) -> Any:
    """A single text as a string, which is the form of messages without an id."""
    part = content[0] if isinstance(content, (list, tuple)) and len(content) == 1 else None
    if not isinstance(part, Mapping) or part.get("type") != "output_text":
        return content
    says_more = any(part[key] for key in part if key not in {"type", "text"})
    return content if says_more else part.get("text", "")
