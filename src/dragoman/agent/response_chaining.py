"""Chains requests to stored responses (OpenAI Responses): only new messages are sent.

In a turn with tools, the first response brings calls and an id; the second request has the results
and `previous_response_id`. Requests and responses are remembered here: as long as a conversation
still begins with exactly these messages, a request can be shortened. After an edit, a truncation, a
switch of model or provider, or a restart, it is sent whole.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import NamedTuple

from dragoman.errors import InvalidInputError, InvalidRequest, ProviderError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.requests import Request, State
from dragoman.model.responses import Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason
from dragoman.wire.dialect import dialect, is_dialect
from dragoman.wire.target import Target

_LOST_CODES = frozenset({"previous_response_not_found"})
_LOST_PARAMS = frozenset({"previous_response_id", "input"})
"""The fields named in errors about a missing response: the id, or results whose calls are
missing."""
_BAD_REQUEST, _NOT_FOUND = 400, 404
_FAILED = frozenset({FinishReason.ERROR, FinishReason.CANCELLED})


class Links:
    """The most recent stored responses, and the messages that led to each.

    One instance serves any number of conversations, in any number of threads.
    """

    def __init__(self, most: int = 256) -> None:
        if type(most) is not int or most < 1:
            msg = "the size of Links must be a positive integer"
            raise InvalidInputError(msg)
        self._most = most
        self._kept: OrderedDict[str, _Link] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"Links({len(self)} answers)"

    def linked(self, request: Request, target: Target | None) -> Request:
        """The request with only the messages since the last response, or unchanged.

        System prompt, tools and settings stay in it: the provider doesn't carry them over (W36).
        """
        is_kept = target is not None and "previous_response_id" in target.state.fields
        if target is None or not (is_kept and target.host.resumes_answers):
            return request
        place = _last_answer(request.messages)
        if place is None or not _is_open(request, target.dialect):
            return request
        link = self._link(request.messages[: place + 1])
        newer = _newer(request.messages[place], request.messages[place + 1 :])
        if link is None or not newer or not link.is_at(target, request.model):
            return request
        state = (request.state or State()).replace(previous_response_id=link.response_id)
        return request.replace(messages=newer, state=state)

    def remember(self, request: Request, response: Response, target: Target | None = None) -> None:
        """Remember the response to a request, given whole even if it was sent shortened.

        The target tells which model was requested, if the response names another.
        """
        if len(response.choices) != 1:
            return
        answer = response.message
        origin = answer.origin
        response_id = None if origin is None else origin.response_id
        if origin is None or response_id is None or not _keeps_answers(origin.dialect):
            return
        if not _is_open(request, origin.dialect) or not _is_kept(response, origin.dialect):
            return
        asked = request.model or (None if target is None else target.model)
        with self._lock:
            self._kept[response_id] = _Link(response_id, asked, (*request.messages, answer))
            self._kept.move_to_end(response_id)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, what: Request | str) -> None:
        """Never continue from a response again: by its id, or by a request that did."""
        response_id = what if isinstance(what, str) else _previous(what)
        with self._lock:
            self._kept.pop(response_id or "", None)

    def is_forgotten(self, request: Request, error: BaseException) -> bool:
        """Whether a shortened request failed because the provider lost the earlier response.

        Then nothing has happened, and the whole request can be sent.
        """
        if _previous(request) is None or not isinstance(error, ProviderError):
            return False
        if error.code in _LOST_CODES:
            return True
        if not isinstance(error, InvalidRequest):
            return False
        is_there = error.status in {_BAD_REQUEST, _NOT_FOUND} and error.param in _LOST_PARAMS
        return is_there or error.status == _NOT_FOUND

    def _link(self, messages: Sequence[Message]) -> _Link | None:
        """The link at the end of these messages, if they led to it."""
        origin = messages[-1].origin
        response_id = "" if origin is None else origin.response_id or ""
        with self._lock:
            link = self._kept.get(response_id)
            if link is None or len(link.messages) != len(messages):
                return None
            self._kept.move_to_end(response_id)
        return link if all(map(_says_the_same, link.messages, messages)) else None


class _Link(NamedTuple):
    """A stored response, the model name of its request, and all messages that led to it."""

    response_id: str
    asked: str | None
    messages: tuple[Message, ...]

    def is_at(self, target: Target, model: str | None) -> bool:
        """Whether the response was made by this target and model."""
        asks = model or target.model
        origin = self.messages[-1].origin
        if None not in (self.asked, asks):  # Azure deployments respond with other names
            return self.asked == asks and target.replace(model=None).has_made(origin)
        return target.replace(model=asks).has_made(origin)


# --- comparing messages


def _last_answer(messages: Sequence[Message]) -> int | None:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role is Role.ASSISTANT:
            return place
    return None


def _says_the_same(kept: Message, message: Message) -> bool:
    """Whether both would be the same on the wire: ids and times only matter to the history."""
    if kept is message:
        return True
    return (
        kept.role is message.role
        and kept.name == message.name
        and kept.extras == message.extras
        and len(kept.parts) == len(message.parts)
        and all(one.identical(other) for one, other in zip(kept.parts, message.parts, strict=True))
    )


def _newer(answer: Message, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages after a response if they can be sent without it; otherwise none.

    Every call must have exactly one result, and no result may belong to another call, because that
    can't be repaired without the calls. Each result itself names the kind of its call.
    """
    calls = {call.id: call for call in answer.tool_calls}
    answered = [result.call_id for message in messages for result in message.tool_results]
    if len(calls) != len(answer.tool_calls) or sorted(answered) != sorted(calls):
        return ()
    return tuple(_with_kinds(message, calls) for message in messages)


def _with_kinds(message: Message, calls: Mapping[str, ToolCall]) -> Message:
    parts = tuple(
        part.replace_unchecked(kind=calls[part.call_id].kind)
        if isinstance(part, ToolResult) and part.kind != calls[part.call_id].kind
        else part
        for part in message.parts
    )
    is_same = all(one is other for one, other in zip(parts, message.parts, strict=True))
    return message if is_same else message.replace_unchecked(parts=parts)


# --- what providers store


def _previous(request: Request) -> str | None:
    return None if request.state is None else request.state.previous_response_id


def _is_open(request: Request, dialect: str) -> bool:
    """Whether the response will be stored, and the caller manages no state itself."""
    state, own = request.state, request.extras.get(dialect, EMPTY)
    if state is not None and (
        state.store is False or state.previous_response_id or state.conversation
    ):
        return False
    return own.get("store") is not False and not (
        own.get("previous_response_id") or own.get("conversation")
    )


def _keeps_answers(name: str) -> bool:
    """Whether the dialect's vendor stores responses for later requests."""
    return is_dialect(name) and dialect(name).target.host.resumes_answers


def _is_kept(response: Response, dialect: str) -> bool:
    """Whether the provider can continue from a response; it says if it didn't store it."""
    finish = response.finish
    if finish is not None and (finish.is_cut_off or finish in _FAILED):
        return False
    return response.extras.get(dialect, EMPTY).get("store") is not False
