"""What a provider that looks items up would refuse: steps of fitting, and repairs of the items.

Histories get cut, mixed and edited. Ids that can't be are left out where an item can do without
(W21, W28). Calls and outputs are paired (W29). Reasoning that does not stand before what it led to
is left out, and what it may have led to loses its id (W23, W24, W25). All that is left out is
reported.
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
from dragoman.wire.fitting.settings import has_hidden_context
from dragoman.wire.fitting.steps import Step, unless_same, with_changed_parts
from dragoman.wire.losses import Action, Loss, Note, Repair
from dragoman.wire.openai_responses.content_forms import without
from dragoman.wire.openai_responses.content_turns import MessageWriter
from dragoman.wire.openai_responses.content_types import (
    APPROVAL,
    CALLS,
    PAIRS,
    PREFIXES,
    is_encrypted,
    is_from_client,
    is_plain_id,
    kind_of,
    may_wait,
    pair_key,
)
from dragoman.wire.openai_responses.dialect import NAME, TARGET
from dragoman.wire.openai_responses.settings import is_stored
from dragoman.wire.openai_responses.tools import is_own
from dragoman.wire.openai_responses.tools_calls import has_long_names, with_short_names
from dragoman.wire.openai_responses.tools_client import made_output
from dragoman.wire.openai_strict_schemas import is_refused_strict
from dragoman.wire.overlay import fields_of
from dragoman.wire.target import Target

# --- steps of fitting


def with_strict_schemas(request: Request, target: Target, notes: list[Note]) -> Request:
    """With schemas that strict mode takes, where one host had taken others (W14)."""
    tools = list(request.tools)
    for index, tool in enumerate(tools):
        if (
            isinstance(tool, ToolDefinition)
            and is_own(tool)
            and is_refused_strict(tool, target, TARGET)
        ):
            tools[index] = tool.replace(origin=None)  # written as anybody else's
            reason = "the schema as strict mode takes it"
            notes.append(Repair(f"tools[{index}].parameters", "W14", "retyped", reason))
    made = unless_same(tools, request.tools)
    return request if made is request.tools else request.replace_trusted(tools=made)


def with_own_text_types(request: Request, _target: Target, notes: list[Note]) -> Request:
    """With texts of the type that their speaker's have: hosts that mind less took others (W30)."""
    messages = list(request.messages)
    for index, message in enumerate(request.messages):
        own_type = "output_text" if message.role is Role.ASSISTANT else "input_text"
        for place, part in enumerate(message.parts):
            if part.extras is EMPTY or type(part) is not Text:  # most have none
                continue
            form = part.extras.get(NAME)
            if isinstance(form, dict) and form.get("type", own_type) != own_type:
                parts = list(messages[index].parts)
                parts[place] = part.replace(extras={**part.extras, NAME: without(form, "type")})
                messages[index] = message.replace_unchecked(parts=tuple(parts))
                path = f"messages[{index}].parts[{place}]"
                notes.append(Repair(path, "W30", "retyped", "a text as its speaker has it"))
    made = unless_same(messages, request.messages)
    return request if made is request.messages else request.replace_trusted(messages=made)


def with_short_argument_names(request: Request, _target: Target, notes: list[Note]) -> Request:
    """With names in arguments that are not too long (W39)."""

    def shortened(part: AnyPart, path: str) -> AnyPart:
        if not _has_long_names(part):
            return part
        notes.append(Loss(f"{path}.arguments", "a property's name was shortened (W39)"))
        return part.replace_unchecked(raw=with_short_names(part.raw_arguments), input=None)

    return request.replace_trusted(messages=with_changed_parts(request.messages, shortened))


def _has_long_names(part: Part) -> TypeGuard[ToolCall]:
    if type(part) is not ToolCall or part.kind != "function":
        return False
    return has_long_names(part.raw_arguments)


STEPS = (
    Step(with_strict_schemas, ("schemas.checks_strict",), lambda _, to: to.schemas.checks_strict),
    Step(with_own_text_types, ("state.verifies_items",), lambda _, to: to.state.verifies_items),
    Step(
        with_short_argument_names,
        ("tools.limits_argument_names",),
        lambda seen, to: to.tools.limits_argument_names and any(map(_has_long_names, seen.calls)),
    ),
)
"""What fitting sees to for this dialect alone."""


# --- repairs of the items, once they are written

_REASONING = "reasoning"
_OUTPUTS = frozenset(PAIRS.values())
# What its items have an id for, but need not have (the SDK's types).
_OPTIONAL = frozenset(
    {"message", "compaction", "tool_search_call", "tool_search_output", "shell_call",
     "apply_patch_call", *CALLS, *_OUTPUTS}
) - {"local_shell_call_output"}  # fmt: skip
_LED_TO = frozenset({"message", *CALLS})
_CUT = "thinking without what it led to (W23)"
_UNSEALED = "thinking that is not stored and not sealed (W25)"
_NAMELESS = "an item that can't be sent without its own id (W21)"
_TWICE = "an item that is there already (W28)"
_NO_REASONING = "an item that can't be sent without the reasoning before it (W24)"
_UNANSWERED = "a call that nobody answered (W29)"
_UNCALLED = "the output of a call that is not there (W29)"


def repaired_items(request: Request, writing: MessageWriter) -> list[Any]:
    """The items that were written for a request, as the target takes them."""
    if writing.target.fields.needs_message_type:
        _add_types(request, writing)
    if not writing.target.state.verifies_items:
        return writing.items
    return _ItemRepairs(request, writing).items()


def _add_types(request: Request, writing: MessageWriter) -> None:
    """Give answers their type, which some hosts insist on."""
    for index, item in enumerate(writing.items):
        is_answer = isinstance(item, dict) and item.get("role") == "assistant"
        if is_answer and "content" in item and "type" not in item:
            writing.items[index] = {"type": "message", **item}
            place = writing.places[index]
            if writing.target.owns(request.messages[place.message]):
                path = f"messages[{place.message}].parts[{place.start}]"
                writing.repair(path, "shape", "added", "the type of the item")


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
        """Messages whose model had reasoned, as far as is known, before anything that is left."""

    def items(self) -> list[Any]:
        """The items that can be sent."""
        self._check_ids()
        unanswered = self._check_pairs()
        if _REASONING in self._kinds or self._has_reasoned:
            for turn in self._turns():
                self._check_turn(turn)
            if self._dropped:
                unanswered = self._check_pairs()
        return list(self._left(unanswered)) if self._dropped or unanswered else self._items

    def _is_kept(self, index: int) -> bool:
        """Whether an item is of a message that came in this dialect and stays as it came."""
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
                self._drop(index, _UNSEALED)
            elif type(item_id) is not str:
                if kind == _REASONING and not is_encrypted(item):
                    self._drop(index, _NAMELESS)
            elif item_id in seen:
                self._strip(index, _TWICE, "W28")
            elif not is_plain_id(item_id) or not item_id.startswith(PREFIXES.get(kind, "")):
                self._strip(index, _NAMELESS, "W21")
            else:
                seen.add(item_id)

    def _strip(self, index: int, reason: str, rule: str) -> None:
        """Leave the id out, or the item where it can't do without."""
        item, kind = self._items[index], self._kinds[index]
        if kind not in _OPTIONAL or self._is_kept(index):
            self._drop(index, reason)
            return
        rest = {key: value for key, value in item.items() if key != "id"}
        if kind == "message" and item.get("role") == "assistant":
            rest.pop("status", None)  # a message without an id has none
            rest["content"] = _plain(rest.get("content"))
        self._items[index] = rest
        self._repaired(index, rule, "dropped", "the id of the item")

    # --- calls and outputs

    def _check_pairs(self) -> frozenset[int]:
        """Leave out what has lost its other half; the calls that an output is to be made for."""
        unanswered, uncalled = self._unpaired()
        messages = self._request.messages
        if uncalled and not has_hidden_context(self._request, messages, self._writing.target):
            for index in uncalled:
                self._drop(index, _UNCALLED)
        for index in unanswered:
            if self._unknown_output(index) is None or pair_key(self._items[index])[1] is None:
                self._drop(index, _UNANSWERED)
        return frozenset(unanswered) - self._dropped

    def _unpaired(self) -> tuple[list[int], list[int]]:
        """The calls that want an output and have none, and the outputs whose call is not there."""
        calls: dict[int, tuple[bool, str | None]] = {}
        outputs: dict[int, tuple[bool, str | None]] = {}
        for index, kind in enumerate(self._kinds):
            is_call = kind in PAIRS
            if (is_call or kind in _OUTPUTS) and index not in self._dropped:
                (calls if is_call else outputs)[index] = pair_key(self._items[index])
        called, answered = set(calls.values()), set(outputs.values())
        unanswered = [index for index in calls if calls[index] not in answered]
        uncalled = [index for index in outputs if outputs[index] not in called]
        return [index for index in unanswered if self._wants_output(index)], uncalled

    def _wants_output(self, index: int) -> bool:
        """Whether a call has to be answered; approval may be left open."""
        if self._kinds[index] == APPROVAL or may_wait(self._items[index]):
            return False
        return not self._is_kept(index)

    def _left(self, unanswered: frozenset[int]) -> Iterator[Any]:
        """The items that are left, with an output behind a turn for each call without one."""
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
                self._repaired(index, "I9", "added", "a result that says the outcome is unknown")
        yield from made

    def _unknown_output(self, index: int) -> dict[str, Any] | None:
        """An output that says that nobody knows how a call ended; None where none can say it."""
        item, kind = self._items[index], self._kinds[index]
        if kind not in CALLS:
            return made_output(item, UNKNOWN)
        return {"type": CALLS[kind], "call_id": item.get("call_id"), "output": UNKNOWN}

    # --- reasoning

    def _is_from_client(self, index: int) -> bool:
        return bool(self._kinds[index]) and is_from_client(self._items[index])

    def _turns(self) -> Iterator[list[int]]:
        """The places of the model's items, message by message.

        What reasoning led to came in the same answer. In another message it is another answer's.
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
        """Leave out reasoning that was cut off, and ids that ask for it."""
        # The provider's own tools may come first in any answer: recorded, with and without.
        lacks_reasoning = (
            self._places[turn[0]].message in self._has_reasoned and self._kinds[turn[0]] in _LED_TO
        )
        chain: list[int] = []
        for index in turn:
            if self._kinds[index] == _REASONING:
                chain.append(index)
            elif index not in self._dropped:
                if chain:
                    lacks_reasoning = not self._is_led_to(index, chain)
                    if lacks_reasoning:
                        self._cut(chain)
                    chain = []
                if lacks_reasoning and self._has_id(index):
                    self._strip(index, _NO_REASONING, "W24")
        self._cut(chain)

    def _is_led_to(self, index: int, chain: list[int]) -> bool:
        """Whether an item can be what the reasoning right before it led to, all of that."""
        is_whole = self._dropped.isdisjoint(chain)
        return is_whole and (self._has_id(index) or not self._is_stored)

    def _has_id(self, index: int) -> bool:
        return bool(self._kinds[index]) and self._items[index].get("id") is not None

    def _cut(self, chain: list[int]) -> None:
        for index in chain:
            if index not in self._dropped:
                self._drop(index, _CUT)


def _plain(content: Any) -> Any:
    """A lone text as a text: without an id, that is the form that the types know."""
    part = content[0] if isinstance(content, (list, tuple)) and len(content) == 1 else None
    if not isinstance(part, Mapping) or part.get("type") != "output_text":
        return content
    says_more = any(part[key] for key in part if key not in {"type", "text"})
    return content if says_more else part.get("text", "")
