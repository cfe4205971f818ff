"""Shows calls run by the provider behind a front to clients of another dialect.

The original call travels in an envelope, next to a counterpart in the client's own dialect whose id
is marked as ours. When the client sends its history back, counterparts whose envelope is also there
are dropped; if the client has dropped the envelope, only the counterpart is left, and it becomes
text, since no provider knows its id.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from dragoman.model.content import AnyPart
from dragoman.model.parts import Citation, Origin, Part, ServerToolCall, ServerToolResult, Text
from dragoman.model.provider_tools import ProviderTool
from dragoman.wire.dialect import description_of
from dragoman.wire.digests import blake2b
from dragoman.wire.provider_calls import (
    CallForms,
    ProviderCall,
    ProviderResult,
    call_text,
    result_text,
    unknown_text,
)

MARK = "_dragoman_"
_RUN = (ServerToolCall, ServerToolResult)


def is_counterpart(part: Part) -> TypeGuard[ServerToolCall | ServerToolResult]:
    """Whether a part is the counterpart of another provider's call, made by a front."""
    return isinstance(part, _RUN) and part.call_id is not None and MARK in part.call_id


class _Call(NamedTuple):
    """A call that the client was shown."""

    given_id: str | None
    shown_id: str
    kind: type[ProviderTool]


class Counterpart(NamedTuple):
    """The parts that a client is shown for a call or a result, and their id."""

    parts: tuple[AnyPart, ...] = ()
    shown_id: str | None = None


_NOTHING = Counterpart()


class ShownCalls:
    """Creates the counterparts of the calls in one message."""

    __slots__ = ("_calls", "_front", "_is_next", "_message_id")

    def __init__(self, front: str, message_id: Callable[[], str]) -> None:
        self._front = _forms(front)
        self._message_id = message_id
        self._calls: list[_Call] = []
        self._is_next = False  # whether the last call is also the last part shown

    @property
    def are_signed(self) -> bool:
        """Whether counterparts carry the envelope themselves."""
        return self._front is not None and self._front.are_signed

    def interrupt(self) -> None:
        """Record that something else is shown."""
        self._is_next = False

    def beside(
        self, origin: Origin, extras: Mapping[str, Any], cited: Sequence[Citation]
    ) -> tuple[AnyPart, ...]:
        """The calls that a response reports beside its content, if this front can show them."""
        home = _forms(origin.dialect)
        if home is None or home.beside is None or self._front is None:
            return ()
        found = home.beside(extras, cited)
        return tuple([part for part in found if self._can_show(part, home)])

    def _can_show(self, part: AnyPart, home: CallForms) -> bool:
        call = home.call(part) if isinstance(part, ServerToolCall) else None
        if call is None or self._front is None or call.kind not in self._front.shown:
            return False
        return all(known.kind is not call.kind for known in self._calls)  # not shown already

    def of(self, part: AnyPart, home: Origin) -> Counterpart:
        """The counterpart of a part; empty if the client's dialect has no such call."""
        front, forms = self._front, _forms(home.dialect)
        if front is None or forms is None or not front.shown:
            return _NOTHING
        if isinstance(part, ServerToolCall):
            return self._call(part, home, forms.call(part), front)
        if isinstance(part, ServerToolResult):
            return self._result(part, forms.result(part), front)
        return _NOTHING

    def _call(
        self, part: ServerToolCall, home: Origin, call: ProviderCall | None, front: CallForms
    ) -> Counterpart:
        self._is_next = False
        if call is None or call.kind not in front.shown:
            return _NOTHING
        answer = home.response_id or self._message_id()  # the same when streamed
        said = f"{answer} {len(self._calls)} {part.call_id} {part.name}"
        digest = blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        shown_id = f"{front.prefixes.get(call.kind, 'call')}{MARK}{digest}"
        parts = front.shown[call.kind].call(call, shown_id)
        if not parts:
            return _NOTHING
        self._calls.append(_Call(part.call_id, shown_id, call.kind))
        self._is_next = call.outcome is None
        return Counterpart(parts, shown_id)

    def _result(
        self, part: ServerToolResult, result: ProviderResult | None, front: CallForms
    ) -> Counterpart:
        call = self._called(part.call_id)
        is_next, self._is_next = self._is_next and call is self._calls[-1], False
        if result is None or call is None or result.kind is not call.kind:
            return _NOTHING
        if front.joins_results and not is_next:
            return _NOTHING  # the object of its call is already complete
        return Counterpart(front.shown[call.kind].result(result, call.shown_id), call.shown_id)

    def _called(self, call_id: str | None) -> _Call | None:
        return next((call for call in reversed(self._calls) if call.given_id == call_id), None)


def without_counterparts(
    parts: Iterable[AnyPart], told: Collection[str], dialect: str
) -> list[AnyPart]:
    """A client's parts, without the counterparts of calls that came back themselves.

    `told` has the ids of those calls. Other counterparts become text.
    """
    left: list[AnyPart] = []
    for part in parts:
        if not is_counterpart(part):
            left.append(part)
        elif part.call_id not in told and (said := _text_of(part, dialect)):
            left.append(Text(said))
    return left


def _text_of(part: AnyPart, dialect: str) -> str | None:
    forms, said = _forms(dialect), None
    if isinstance(part, ServerToolCall):
        call = None if forms is None else forms.call(part)
        said = unknown_text(part) if call is None else call_text(call)
    elif isinstance(part, ServerToolResult):
        result = None if forms is None else forms.result(part)
        said = unknown_text(part) if result is None else result_text(result)
    return said


def _forms(dialect: str) -> CallForms | None:
    described = description_of(dialect)
    return None if described is None else described.provider_calls
