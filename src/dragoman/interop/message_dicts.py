"""Decodes message dicts with the dialect that wrote them.

Adjacent dicts of one dialect are decoded together, as one request, so that results find their calls
and Responses items become the messages that they are part of. Fields that the dialect doesn't have
belong to the caller: they are kept as the fields and extras of our own shapes, and never sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError, WireError
from dragoman.interop.message_dialects import OWN, dialects_of
from dragoman.model import inputs, shapes
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message, make_message
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.wire.call_ids import OpenCalls
from dragoman.wire.description import MessageForm
from dragoman.wire.detection import evidence
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.overlay import fields_of

Slot = Message | dict[str, Any]
"""One item of a conversation: a message, or a dict that is still to be decoded."""

_OWN_FIELDS = ("id", "metadata", "_metadata", "created_at", "createdAt", "extras")
_IDS = frozenset({"id", "call_id", "tool_call_id", "tool_use_id"})


class Run(NamedTuple):
    """Messages that were decoded together."""

    messages: Sequence[Message]
    ids: frozenset[str] | None
    """The ids in the dicts; None if the messages must not be changed."""


def runs_of(slots: Sequence[Slot]) -> Iterator[Run]:
    """The messages of a conversation, in order."""
    names = iter(dialects_of([slot for slot in slots if isinstance(slot, dict)]))
    named = [(next(names) if isinstance(slot, dict) else OWN, slot) for slot in slots]
    for name, pairs in groupby(named, lambda pair: pair[0]):
        run = [slot for _, slot in pairs]
        if name == OWN:
            yield from map(_own, run)
        else:
            wire = [slot for slot in run if isinstance(slot, dict)]
            yield _run(_decoded_run(dialect(name), wire), wire)


def _own(slot: Slot) -> Run:
    if isinstance(slot, Message):
        return Run((slot,), None)
    return _run((inputs.own_message(slot, Message),), (slot,))


def _run(messages: Sequence[Message], wire: Iterable[dict[str, Any]]) -> Run:
    return Run(messages, frozenset(_ids_in(wire)) if uses_tools(messages) else frozenset())


def uses_tools(messages: Sequence[Message]) -> bool:
    """Whether any of these messages has a tool call or a result."""
    return any(isinstance(part, (ToolCall, ToolResult)) for m in messages for part in m.parts)


def decoded(spoken: Dialect, body: dict[str, Any]) -> Request:
    """The request in a body from user input."""
    try:
        return spoken.decode_request(body)
    except WireError as error:
        problem = str(error)
    # This was not received from a peer, so the error is the caller's.
    msg = f"this can't be read as {spoken.name}: {problem}"
    raise InvalidInputError(msg)


def with_system(request: Request) -> list[Message]:
    """The messages of a request, its instructions first."""
    told = [make_message(Role.SYSTEM, request.system)] if request.system else []
    return [*told, *request.messages]


# --- one run of dicts


def _decoded_run(spoken: Dialect, wire: list[dict[str, Any]]) -> list[Message]:
    form = spoken.description.messages
    if form.fields is None:
        return list(decoded(spoken, {spoken.messages_field: wire}).messages)
    items = [_with_role(_known_fields(item, form.fields), form) for item in wire]
    read = decoded(spoken, {spoken.messages_field: items}).messages
    if len(read) != len(wire):
        msg = f"some of these messages are empty in {spoken.name}"
        raise InvalidInputError(msg)
    return [_completed(*pair, form.fields, spoken) for pair in zip(read, wire, strict=True)]


def _known_fields(item: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    fields = {key: item[key] for key in item if key in known}
    if fields.get("name") == "":
        del fields["name"]  # as in our own shapes, an empty name means none
    return fields


def _with_role(item: dict[str, Any], form: MessageForm) -> dict[str, Any]:
    """The dict with its dialect's role, which stored forms may omit."""
    if form.role_names is None:
        return item
    given = item.get("role")
    guessed = Role.ASSISTANT if _is_models(item, form) else Role.USER
    role = Role.parse(given) if given else guessed
    return {**item, "role": form.role_names.get(role, role.value)}


def _is_models(item: Mapping[str, Any], form: MessageForm) -> bool:
    """Whether a message has a part that only a model produces."""
    blocks = item.get(form.content_field)
    return any(
        block.get("type") in form.model_parts or not form.model_parts.isdisjoint(block)
        for block in (blocks if isinstance(blocks, list) else ())
        if isinstance(block, dict) and isinstance(block.get("type", ""), str)
    )


def _completed(
    message: Message, wire: Mapping[str, Any], known: frozenset[str], spoken: Dialect
) -> Message:
    """The message with the caller's own fields."""
    is_answer = evidence().form(spoken.name).is_answer
    if is_answer is not None and is_answer(wire):
        return _answered(spoken, wire)
    rest = {key: value for key, value in wire.items() if key not in known}
    if not rest:
        return message
    fields = shapes.read({key: rest.pop(key) for key in _OWN_FIELDS if key in rest})
    kept = {key: fields[key] for key in ("id", "metadata", "created_at") if key in fields}
    extras = {**message.extras, **fields["extras"]}
    if rest:
        extras["canonical"] = {**fields_of(extras, "canonical"), **rest}
    return message.replace(**kept, extras=extras)


def _answered(spoken: Dialect, wire: Mapping[str, Any]) -> Message:
    """The message of a response, with its usage and finish reason."""
    try:
        return spoken.decode_response(dict(wire)).message
    except WireError as error:
        problem = str(error)
    msg = f"this can't be read as a {spoken.name} response: {problem}"
    raise InvalidInputError(msg)


def _ids_in(wire: Iterable[Any]) -> Iterator[str]:
    """All values of fields that hold ids of calls and results."""
    left = list(wire)
    while left:
        value = left.pop()
        if isinstance(value, ToolCall):
            yield value.id
        elif isinstance(value, ToolResult):
            yield value.call_id
        elif isinstance(value, dict):
            yield from (value[key] for key in _IDS if isinstance(value.get(key), str))
            left += value.values()
        elif isinstance(value, list):
            left += value


# --- calls and results of messages that were decoded separately
#
# Each run of dicts is decoded on its own. If its wire format has no ids (W81, W103), the decoder
# makes its own, which may also occur in another run, and results of a call in an earlier run match
# no call at all.


def paired(runs: Sequence[Run]) -> list[Message]:
    """The messages of all runs, with results matched to their calls."""
    return _Pairing(runs).messages


class _Pairing:
    """Processes the runs of a conversation, in order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.messages: list[Message] = []
        self._waiting = OpenCalls[str]()
        """The calls without a result of the last message that had calls."""
        self._given = frozenset(
            call.id
            for run in runs
            for message in run.messages
            for call in message.tool_calls
            if not _is_made(call, run)
        )
        """The ids of calls that were in the input."""
        self._taken = set(self._given)
        self._copies: Counter[str] = Counter()
        for run in runs:
            self._add(run)

    def _add(self, run: Run) -> None:
        if not uses_tools(run.messages):
            self.messages += run.messages
            return
        ids = {call.id: call.id for message in run.messages for call in message.tool_calls}
        for call in (call for message in run.messages for call in message.tool_calls):
            if _is_made(call, run):
                ids[call.id] = self._free(call.id)
        for message in run.messages:
            if message.tool_calls:
                self._waiting = OpenCalls()
            parts = tuple(self._part(part, run, ids) for part in message.parts)
            is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
            self.messages.append(message if is_same else message.replace_unchecked(parts=parts))

    def _part(self, part: AnyPart, run: Run, ids: dict[str, str]) -> AnyPart:
        if isinstance(part, ToolCall):
            own = ids[part.id]
            self._waiting.add(own, part.name, (own,), None)
            return part if own == part.id else part.replace_unchecked(id=own)
        if isinstance(part, ToolResult):
            answered = self._answered(part, run, ids)
            if self._is_waiting(answered):
                self._waiting.close(answered)
            return part if answered == part.call_id else part.replace_unchecked(call_id=answered)
        return part

    def _answered(self, result: ToolResult, run: Run, ids: dict[str, str]) -> str:
        """The id of the call that a result belongs to: by id, otherwise by name and order."""
        if result.call_id in ids:
            return ids[result.call_id]
        if self._is_waiting(result.call_id):
            return result.call_id
        is_named = run.ids is None or result.call_id in run.ids
        # A result with an id can only match a call whose id was made up.
        called = self._waiting.waiting(result.tool_name)
        found = next((call for call in called if not (is_named and call in self._given)), None)
        if found is not None:
            return found
        if not is_named and not result.call_id:
            msg = "a tool message needs the id of its call, since no call precedes it"
            raise InvalidInputError(msg)
        return result.call_id if is_named else self._free(result.call_id)

    def _is_waiting(self, call_id: str) -> bool:
        return self._waiting.oldest((call_id,)) is not None

    def _free(self, id_: str) -> str:
        """The id, or a new one derived from it if it is taken."""
        free = id_
        while free in self._taken:
            self._copies[id_] += 1
            free = f"{id_}_{self._copies[id_] + 1}"
        self._taken.add(free)
        return free


def _is_made(call: ToolCall, run: Run) -> bool:
    """Whether the decoder made up a call's id."""
    return run.ids is not None and call.id not in run.ids
