"""Items that fit together: what a provider that looks them up would refuse is put right.

Histories get cut, mixed and edited. Ids that can't be are left out where an item can do without
(W21, W28). Calls and outputs are paired (W29). Reasoning that does not stand before what it led to
is left out, and what it may have led to loses its id (W23, W24, W25). All that is left out is
reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dragoman.wire.fitting.pairing import UNKNOWN
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.openai_responses.content_items import (
    APPROVAL,
    APPROVED,
    BUILT_IN_CALLS,
    CALLS,
    PREFIXES,
    is_encrypted,
    is_from_client,
    is_plain_id,
    kind_of,
    may_wait,
    pair_of,
)

_REASONING = "reasoning"
_PAIRS = {**CALLS, **BUILT_IN_CALLS, APPROVAL: APPROVED}
_ANSWERS = {output: call for call, output in _PAIRS.items()}
# What its items have an id for, but need not have (the SDK's types).
_OPTIONAL = frozenset(
    {"message", "compaction", "tool_search_call", "tool_search_output", "shell_call",
     "apply_patch_call", *CALLS, *_ANSWERS}
) - {"local_shell_call_output"}  # fmt: skip
_LED_TO = frozenset({"message", *CALLS})
_CUT = "thinking without what it led to (W23)"
_UNSEALED = "thinking that is not stored and not sealed (W25)"
_NAMELESS = "an item that can't be sent without its own id (W21)"
_TWICE = "an item that is there already (W28)"
_BEREFT = "an item that can't be sent without the reasoning before it (W24)"
_UNANSWERED = "a call that nobody answered (W29)"
_UNCALLED = "the output of a call that is not there (W29)"


class Place(NamedTuple):
    """Where an item came from: its message, and the first and last of its parts."""

    message: int
    start: int
    end: int


class Situation(NamedTuple):
    """What counts besides the items."""

    is_stored: bool
    """Whether the provider keeps what it is sent."""
    is_continued: bool
    """Whether it holds other items, to which outputs may belong."""
    gaps: frozenset[int]
    """Messages whose model had reasoned, as far as is known, before anything that is left."""
    spared: frozenset[int] = frozenset()
    """Messages that came in this dialect and stay as they came."""


class Coherence:
    """One pass over the items of a request."""

    def __init__(self, items: Sequence[Any], places: Sequence[Place], situation: Situation) -> None:
        self._items = list(items)
        self._kinds = [kind_of(item) if isinstance(item, dict) else "" for item in items]
        self._calls = [index for index, kind in enumerate(self._kinds) if kind in _PAIRS]
        self._answers = [index for index, kind in enumerate(self._kinds) if kind in _ANSWERS]
        self._places = places
        self._situation = situation
        self._dropped: set[int] = set()
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []

    def items(self) -> list[Any]:
        """The items that can be sent."""
        self._check_ids()
        if not self._are_paired():
            self._pair()
        if _REASONING in self._kinds or self._situation.gaps:
            for turn in self._turns():
                self._check_turn(turn)
            if self._dropped:
                self._drop_uncalled()
        if not self._dropped and self._are_paired():
            return self._items
        return list(self._left(frozenset(self._unanswered())))

    def _drop(self, index: int, reason: str) -> None:
        place = self._places[index]
        if place.message in self._situation.spared:
            return
        self._dropped.add(index)
        self.losses.extend(
            Loss(f"messages[{place.message}].parts[{part}]", reason)
            for part in range(place.start, place.end)
        )

    def _repaired(self, index: int, rule: str, action: Action, reason: str) -> None:
        place = self._places[index]
        path = f"messages[{place.message}].parts[{place.start}]"
        self.repairs.append(Repair(path, rule, action, reason))

    # --- ids

    def _check_ids(self) -> None:
        seen: set[str] = set()
        is_stored = self._situation.is_stored
        for index, kind in enumerate(self._kinds):
            if not kind:
                continue
            item = self._items[index]
            item_id = item.get("id")
            if kind == _REASONING and not (is_stored or is_encrypted(item)):
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
        if kind not in _OPTIONAL or self._places[index].message in self._situation.spared:
            self._drop(index, reason)
            return
        rest = {key: value for key, value in item.items() if key != "id"}
        if kind == "message" and item.get("role") == "assistant":
            rest.pop("status", None)  # a message without an id has none
            rest["content"] = _plain(rest.get("content"))
        self._items[index] = rest
        self._repaired(index, rule, "dropped", "the id of the item")

    # --- calls and outputs

    def _are_paired(self) -> bool:
        """Whether every call has its output and every output its call; mostly that is so."""
        calls, answers = map(self._key, self._calls), map(self._key, self._answers)
        return not self._dropped and set(calls) == set(answers)

    def _pair(self) -> None:
        """Leave out what has lost its other half."""
        self._drop_uncalled()
        for index in self._unanswered():
            kind = self._kinds[index]
            if kind in BUILT_IN_CALLS or pair_of(self._items[index], kind) is None:
                self._drop(index, _UNANSWERED)

    def _drop_uncalled(self) -> None:
        if self._situation.is_continued:
            return
        called = {self._key(index) for index in self._calls if index not in self._dropped}
        for index in self._answers:
            if index not in self._dropped and self._key(index) not in called:
                self._drop(index, _UNCALLED)

    def _unanswered(self) -> list[int]:
        """The calls that want an output and have none; approval may be left open."""
        answered = {self._key(index) for index in self._answers if index not in self._dropped}
        return [
            index
            for index in self._calls
            if index not in self._dropped
            and self._places[index].message not in self._situation.spared
            and self._kinds[index] != APPROVAL
            and not may_wait(self._items[index])
            and self._key(index) not in answered
        ]

    def _key(self, index: int) -> tuple[bool, str | None]:
        """The same for a call and its output."""
        kind = self._kinds[index]
        return kind in (APPROVAL, APPROVED), pair_of(self._items[index], kind)

    def _left(self, waiting: frozenset[int]) -> Iterator[Any]:
        """The items that are left, with an output behind a turn for each call without one."""
        made: list[dict[str, Any]] = []
        for index, item in enumerate(self._items):
            if index in self._dropped:
                continue
            if made and self._is_from_client(index):
                yield from made
                made = []
            yield item
            if index in waiting:
                kind = self._kinds[index]
                call_id = pair_of(item, kind)
                made.append({"type": CALLS[kind], "call_id": call_id, "output": UNKNOWN})
                self._repaired(index, "I9", "added", "a result that says the outcome is unknown")
        yield from made

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
        is_bereft = (
            self._places[turn[0]].message in self._situation.gaps
            and self._kinds[turn[0]] in _LED_TO
        )
        chain: list[int] = []
        for index in turn:
            if self._kinds[index] == _REASONING:
                chain.append(index)
            elif index not in self._dropped:
                if chain:
                    is_bereft = not self._is_led_to(index, chain)
                    chain = self._cut(chain) if is_bereft else []
                if is_bereft and self._has_id(index):
                    self._strip(index, _BEREFT, "W24")
        self._cut(chain)

    def _is_led_to(self, index: int, chain: list[int]) -> bool:
        """Whether an item can be what the reasoning right before it led to, all of that."""
        is_whole = self._dropped.isdisjoint(chain)
        return is_whole and (self._has_id(index) or not self._situation.is_stored)

    def _has_id(self, index: int) -> bool:
        return bool(self._kinds[index]) and self._items[index].get("id") is not None

    def _cut(self, chain: list[int]) -> list[int]:
        for index in chain:
            if index not in self._dropped:
                self._drop(index, _CUT)
        return []


def _plain(content: Any) -> Any:
    """A lone text as a text: without an id, that is the form that the types know."""
    part = content[0] if isinstance(content, (list, tuple)) and len(content) == 1 else None
    if not isinstance(part, Mapping) or part.get("type") != "output_text":
        return content
    says_more = any(part[key] for key in part if key not in {"type", "text"})
    return content if says_more else part.get("text", "")
