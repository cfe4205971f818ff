"""Pairs every call with exactly one result, directly after it (I8, I9).

A call without a result gets one that says its outcome is unknown: if the call were left out, the
model would repeat it. Before that, results are matched by id, then by tool name, then by position.
A result without any call is sent as text.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from operator import is_

from dragoman.model.content import AnyPart
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Opaque, ServerToolCall, Text
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult, make_result
from dragoman.wire.call_ids import OpenCalls
from dragoman.wire.fitting.steps import Keeps, Messages, keep_nothing
from dragoman.wire.losses import Loss, Note, Repair
from dragoman.wire.target import Target

UNKNOWN = (
    "The call was interrupted and its outcome is unknown: it may or may not have taken effect."
    " Check before calling again."
)
CUT_OFF = "The call was cut off before its arguments were complete, and was not run."
PLACEHOLDERS = (UNKNOWN, CUT_OFF)
"""The texts of placeholder results."""
_ASSISTANT, _TOOL, _USER = Role.ASSISTANT, Role.TOOL, Role.USER


def with_paired_results(messages: Messages, target: Target, notes: list[Note]) -> Messages:
    """Pair calls and results, if the target requires it."""
    if not target.turns.pairs_results:
        return messages
    if _are_paired(messages, target) and not (
        target.turns.orders_results and _are_out_of_order(messages)
    ):
        return messages
    return _Pairing(messages, target, notes).paired()


def with_paired_results_among_kept(
    messages: Messages, target: Target, notes: list[Note], keeps: Keeps
) -> Messages:
    """Like `with_paired_results`; calls and results of kept messages are not changed."""
    if not target.turns.pairs_results:
        return messages
    done = _Pairing(messages, target, notes, keeps).paired()
    same = len(done) == len(messages) and all(map(_is_like, done, messages))
    return messages if same else done


def _is_like(one: Message, other: Message) -> bool:
    """Whether pairing left a message unchanged."""
    if len(one.parts) != len(other.parts) or one.role is not other.role:
        return False
    return all(map(is_, one.parts, other.parts))


def _are_paired(messages: Messages, target: Target) -> bool:  # noqa: C901, PLR0911 - one pass, for speed
    waiting: set[str] = set()
    rounds = 0
    was_assistant = False
    for message in messages:
        role = message.role
        if role is _ASSISTANT:
            if waiting and not (was_assistant and target.turns.merges_neighbours):
                return False
            for part in message.parts:
                if type(part) is ToolCall:
                    if part.id in waiting:
                        return False
                    waiting.add(part.id)
                elif type(part) is ToolResult:
                    return False  # an assistant message can't hold results
            rounds, was_assistant = 0, True
            continue
        was_assistant = False
        if role is _USER and not waiting and _is_single_text(message.parts):
            continue  # the most common user message
        results = [part.call_id for part in message.parts if type(part) is ToolResult]
        rounds += bool(results)
        for call_id in results:
            if call_id not in waiting:
                return False
            waiting.remove(call_id)
        if waiting and (len(results) != len(message.parts) or not results):
            return False
        if results and target.turns.groups_results and (rounds > 1 or not _come_first(message)):
            return False
    return not waiting


def _are_out_of_order(messages: Messages) -> bool:
    """Whether results of one tool are in another order than its calls, in a paired conversation."""
    calls: dict[str, tuple[str, int]] = {}
    latest: dict[str, int] = {}
    for message in messages:
        if message.role is _ASSISTANT:
            asked = [part for part in message.parts if type(part) is ToolCall]
            calls = {call.id: (call.name, place) for place, call in enumerate(asked)}
            latest = {}
            continue
        for part in message.parts if calls else ():
            if type(part) is ToolResult and part.call_id in calls:
                name, place = calls[part.call_id]
                if place < latest.get(name, place):
                    return True
                latest[name] = place
    return False


def _is_single_text(parts: tuple[AnyPart, ...]) -> bool:
    return len(parts) == 1 and type(parts[0]) is Text


def _come_first(message: Message) -> bool:
    """Whether no result follows another kind of part (W41)."""
    are_over = False
    for part in message.parts:
        if type(part) is not ToolResult:
            are_over = True
        elif are_over:
            return False
    return True


_Stray = tuple[tuple[int, int], ToolResult]
"""A result whose id matches no call: message index and part index, and the result."""


def _matches(
    waiting: OpenCalls[int], strays: list[_Stray], *, is_named: bool
) -> Iterator[tuple[int, _Stray]]:
    """Pairs of waiting calls and stray results, matched by tool name or by position."""
    for stray in strays:
        name = stray[1].tool_name
        if is_named and name is None:
            continue
        number = waiting.oldest(name if is_named else None)
        if number is not None:
            waiting.close(number)
            yield number, stray


class _Pairing:
    """Pairs the calls and results of a conversation that is out of order, in one pass."""

    def __init__(
        self, messages: Messages, target: Target, notes: list[Note], keeps: Keeps = keep_nothing
    ) -> None:
        self._keeps = keeps
        self._messages = messages
        self._notes = notes
        self._taken: set[tuple[int, int]] = set()
        self._following = (-1, -1)
        """A message, and the end of the run of results directly after it."""
        self._leading: dict[int, int] = {}
        """How many results a message begins with."""
        # Indexed by id, in order, so that long hostile histories don't take quadratic time.
        self._calls: dict[str, deque[int]] = defaultdict(deque)
        self._results: dict[str, deque[tuple[int, int]]] = defaultdict(deque)
        for index, message in enumerate(messages):
            if keeps(message):
                continue
            for place, part in enumerate(message.parts):
                if isinstance(part, ToolResult):
                    self._results[part.call_id].append((index, place))
                elif isinstance(part, ToolCall):
                    self._calls[part.id].append(index)
        self._called = frozenset(self._calls)
        self._kept_calls = frozenset(
            call.id for message in messages if keeps(message) for call in message.tool_calls
        ).union(_other_call_ids(messages) if target.turns.answers_any_call else ())
        self._kept_results = frozenset(
            result.call_id for message in messages if keeps(message)
            for result in message.tool_results
        )  # fmt: skip

    def paired(self) -> Messages:
        done: list[Message] = []
        for index, message in enumerate(self._messages):
            if self._keeps(message):
                done.append(message)
                continue
            if message.role is _ASSISTANT:
                said = self._without_results(index, message)
                if said is None:
                    continue
                done.append(_with_distinct_calls(said))
                self._rename(said, done[-1], index)
                calls = list(zip(said.tool_calls, done[-1].tool_calls, strict=True))
                found = [self._result_of(given, call.id, index) for given, call in calls]
                self._match_strays(calls, found, index)
                results = self._results_of(calls, found, index)
                if results:
                    done.append(make_message(_TOOL, results))
                continue
            rest = self._without_results(index, message)
            if rest is not None:
                done.append(rest)
        return tuple(done)

    def _rename(self, given: Message, done: Message, index: int) -> None:
        """Report calls that got another id."""
        if done is given:
            return
        self._notes.extend(
            Repair(f"messages[{index}].parts[{place}]", "I5", "renamed", "duplicate call id")
            for place, part in enumerate(done.parts)
            if part is not given.parts[place]
        )

    def _result_of(self, call: ToolCall, call_id: str, after: int) -> ToolResult | None:
        """The call's own result, wherever it is before the id is used again."""
        calls, results = self._calls[call.id], self._results[call.id]
        while calls and calls[0] <= after:
            calls.popleft()
        while results and results[0][0] <= after:
            results.popleft()
        if results and (not calls or results[0][0] < calls[0]):
            index, place = found = results.popleft()
            self._taken.add(found)
            result = self._messages[index].parts[place]
            if isinstance(result, ToolResult):
                self._note_move(found, after)
                return result if call_id == call.id else result.replace_unchecked(call_id=call_id)
        return None

    def _note_move(self, found: tuple[int, int], after: int) -> None:
        """Report a result that was not directly after its call, or was in an assistant message."""
        index, place = found
        is_next = index <= self._end_of_results(after)
        is_first = place <= self._leading_results(index)
        if is_next and is_first and self._messages[index].role is not _ASSISTANT:
            return
        path = f"messages[{index}].parts[{place}]"
        self._notes.append(Repair(path, "I8", "moved", "a result must directly follow its call"))

    def _end_of_results(self, after: int) -> int:
        """The index of the first message after one that holds anything but results."""
        if self._following[0] != after:
            end = after + 1
            while end < len(self._messages) and _is_only_results(self._messages[end]):
                end += 1
            self._following = (after, end)
        return self._following[1]

    def _leading_results(self, index: int) -> int:
        if index not in self._leading:
            parts = self._messages[index].parts
            others = (p for p, part in enumerate(parts) if type(part) is not ToolResult)
            self._leading[index] = next(others, len(parts))
        return self._leading[index]

    def _match_strays(
        self,
        calls: list[tuple[ToolCall, ToolCall]],
        found: list[ToolResult | None],
        after: int,
    ) -> None:
        """Assign results with unknown ids to the calls that have no result."""
        strays = self._strays(after) if None in found else []
        waiting = OpenCalls[int]()
        for number, (given, _) in enumerate(calls) if strays else ():
            if found[number] is None and given.id not in self._kept_results:
                waiting.add(number, given.name, None)
        for is_named in (True, False):
            for number, stray in sorted(_matches(waiting, strays, is_named=is_named)):
                self._taken.add(stray[0])
                path = "messages[{}].parts[{}]".format(*stray[0])
                reason = "result with an unknown id, matched by tool name or position"
                self._notes.append(Repair(path, "I8", "renamed", reason))
                found[number] = stray[1].replace_unchecked(call_id=calls[number][1].id)
            strays = [each for each in strays if each[0] not in self._taken]

    def _strays(self, after: int) -> list[_Stray]:
        """The results following a message whose ids match no call."""
        strays: list[_Stray] = []
        for index in range(after + 1, len(self._messages)):
            message = self._messages[index]
            if message.role is _ASSISTANT:
                break
            strays += [
                ((index, place), part)
                for place, part in enumerate(message.parts)
                if isinstance(part, ToolResult)
                and part.call_id not in self._called
                and (index, place) not in self._taken
            ]
        return strays

    def _results_of(
        self,
        calls: list[tuple[ToolCall, ToolCall]],
        found: list[ToolResult | None],
        index: int,
    ) -> tuple[ToolResult, ...]:
        """The results of a message's calls, with placeholders for those that were not found."""
        parts = self._messages[index].parts
        places = [place for place, part in enumerate(parts) if isinstance(part, ToolCall)]
        return tuple(
            result or self._unknown(call, index, place)
            for (given, call), result, place in zip(calls, found, places, strict=True)
            if result or given.id not in self._kept_results
        )

    def _unknown(self, call: ToolCall, index: int, place: int) -> ToolResult:
        """A placeholder result, which says that the outcome is unknown."""
        finish = self._messages[index].finish
        text = CUT_OFF if finish is not None and finish.is_cut_off else UNKNOWN
        path = f"messages[{index}].parts[{place}]"
        reason = "placeholder result: the outcome of the call is unknown"
        self._notes.append(Repair(path, "I9", "added", reason))
        return make_result(call.id, text, tool_name=call.name, is_error=True)

    def _without_results(self, index: int, message: Message) -> Message | None:
        """The message without its results, which now follow their calls or have become text."""
        if not message.tool_results:
            return message
        rest: list[AnyPart] = []
        for place, part in enumerate(message.parts):
            if not isinstance(part, ToolResult):
                rest.append(part)
            elif part.call_id in self._kept_calls:
                rest.append(part)  # its call is in a kept message, or of another kind
            elif (index, place) not in self._taken:
                path = f"messages[{index}].parts[{place}]"
                reason = "the result of a call that is not in the conversation is sent as text"
                self._notes.append(Loss(path, reason))
                rest += _as_content(part)
        if not rest:
            return None
        has_results = any(isinstance(part, ToolResult) for part in rest)
        role = _USER if message.role is _TOOL and not has_results else message.role
        return message.replace_unchecked(role=role, parts=tuple(rest))


def _other_call_ids(messages: Messages) -> Iterator[str]:
    """The ids of calls that are no `ToolCall`: of built-in tools, and of types unknown here."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ServerToolCall) and part.call_id is not None:
                yield part.call_id
            elif isinstance(part, Opaque) and isinstance(part.payload, Mapping):
                call_id = part.payload.get("call_id")
                if isinstance(call_id, str):
                    yield call_id


def _is_only_results(message: Message) -> bool:
    parts = message.parts
    return bool(parts) and all(type(part) is ToolResult for part in parts)


def _as_content(result: ToolResult) -> Iterator[AnyPart]:
    """A result as plain content, for a conversation without its call."""
    name = f" of {result.tool_name}" if result.tool_name else ""
    yield Text(f"(The result{name}, whose call is not part of this conversation:)")
    if isinstance(result.content, str):
        yield Text(result.text)
    else:
        yield from result.content


def _with_distinct_calls(message: Message) -> Message:
    """Give calls with the same id in one message different ids, to tell their results apart."""
    ids = [call.id for call in message.tool_calls]
    if len(ids) == len(set(ids)):
        return message
    seen: set[str] = set()
    parts: list[AnyPart] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            if part.id in seen:
                part = part.replace_unchecked(id=f"{part.id}#{len(seen)}")  # noqa: PLW2901 - the same call
            seen.add(part.id)
        parts.append(part)
    return message.replace_unchecked(parts=tuple(parts))
