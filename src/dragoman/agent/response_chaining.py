"""Providers that keep their answers (OpenAI's Responses): they are sent only what is new since.

In a turn with tools, the first request brings calls and the answer's id, the
second has the results and `previous_response_id`. What was sent and answered is remembered here;
as long as a conversation still begins with exactly that, a request may be shortened. After an
edit, a truncation, a switch of model or provider, or a restart, it is sent whole.
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

_LOST = frozenset({"previous_response_not_found"})
_LOST_AT = frozenset({"previous_response_id", "input"})
"""The fields at fault where a request goes on from what is not there: the id, or results whose
calls are missing."""
_BAD_REQUEST, _NOT_FOUND = 400, 404
_FAILED = frozenset({FinishReason.ERROR, FinishReason.CANCELLED})


class Links:
    """The answers that providers keep, the latest ones, and what each of them answered.

    One serves any number of conversations, in any number of threads.
    """

    def __init__(self, most: int = 256) -> None:
        if type(most) is not int or most < 1:
            msg = "Links keeps a whole number of answers, at least one"
            raise InvalidInputError(msg)
        self._most = most
        self._kept: OrderedDict[str, _Link] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"Links({len(self)} answers)"

    def linked(self, request: Request, target: Target | None) -> Request:
        """The request with only what is new since the last answer; or untouched.

        Instructions, tools and settings stay in it: the provider does not carry them over (W36).
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
        """Note what a request was answered: the whole one, whether it was sent so or shortened.

        The target tells which model was asked, where that is not the name that it answers by.
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
        """Never go on from that answer again: by its id, or by the request that did."""
        response_id = what if isinstance(what, str) else _previous(what)
        with self._lock:
            self._kept.pop(response_id or "", None)

    def is_forgotten(self, request: Request, error: BaseException) -> bool:
        """Whether a shortened request failed because the provider has not got what came before.

        Nothing has happened then, and the whole request may be sent.
        """
        if _previous(request) is None or not isinstance(error, ProviderError):
            return False
        if error.code in _LOST:
            return True
        if not isinstance(error, InvalidRequest):
            return False
        is_there = error.status in {_BAD_REQUEST, _NOT_FOUND} and error.param in _LOST_AT
        return is_there or error.status == _NOT_FOUND

    def _link(self, messages: Sequence[Message]) -> _Link | None:
        """The link that these messages end with, if they are what led to it."""
        origin = messages[-1].origin
        response_id = "" if origin is None else origin.response_id or ""
        with self._lock:
            link = self._kept.get(response_id)
            if link is None or len(link.messages) != len(messages):
                return None
            self._kept.move_to_end(response_id)
        return link if all(map(_says_the_same, link.messages, messages)) else None


class _Link(NamedTuple):
    """An answer that is kept, under what name its model was asked, and all that led to it."""

    response_id: str
    asked: str | None
    messages: tuple[Message, ...]

    def is_at(self, target: Target, model: str | None) -> bool:
        """Whether this is where the answer was made, and by this model."""
        asks = model or target.model
        origin = self.messages[-1].origin
        if None not in (self.asked, asks):  # Azure's deployments answer by other names
            return self.asked == asks and target.replace(model=None).has_made(origin)
        return target.replace(model=asks).has_made(origin)


# --- what was said


def _last_answer(messages: Sequence[Message]) -> int | None:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].role is Role.ASSISTANT:
            return place
    return None


def _says_the_same(kept: Message, message: Message) -> bool:
    """Whether the wire would say the same of both: ids and times are a history's own affair."""
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
    """The messages after an answer, fit to be sent without it; none where they are not.

    Every call must have its one result, and no result may be of another call: nobody can put
    that right without the calls. A result says itself of which kind its call was.
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


# --- what is kept


def _previous(request: Request) -> str | None:
    return None if request.state is None else request.state.previous_response_id


def _is_open(request: Request, dialect: str) -> bool:
    """Whether the answer is to be kept, and the caller keeps no state of its own."""
    state, own = request.state, request.extras.get(dialect, EMPTY)
    if state is not None and (
        state.store is False or state.previous_response_id or state.conversation
    ):
        return False
    return own.get("store") is not False and not (
        own.get("previous_response_id") or own.get("conversation")
    )


def _keeps_answers(name: str) -> bool:
    """Whether answers in a dialect are kept for requests that go on from them, at its vendor's."""
    return is_dialect(name) and dialect(name).target.host.resumes_answers


def _is_kept(response: Response, dialect: str) -> bool:
    """Whether the provider can go on from an answer; it says so where it keeps none."""
    finish = response.finish
    if finish is not None and (finish.is_cut_off or finish in _FAILED):
        return False
    return response.extras.get(dialect, EMPTY).get("store") is not False
