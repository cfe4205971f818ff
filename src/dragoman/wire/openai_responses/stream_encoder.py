"""Streams, written: our events become server-sent ones.

The grammar (W33, W34): the response begins, each item begins, grows and ends in a place of its own
(W35), and the last event has all of it once more. Items may be open side by side. An item ends
with its last part, or, where another part might still belong to it, with the next event.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.messages import make_message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire.framing import is_event_name
from dragoman.wire.fronts import pointed_back
from dragoman.wire.lane.flows import Flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.response import encode_body, has_word, put_probabilities
from dragoman.wire.openai_responses.stream import EVENTS, encode_failure
from dragoman.wire.openai_responses.stream_item_writers import (
    TOO_LATE,
    Answer,
    Body,
    ItemWriter,
    PartWriter,
    text_of,
)
from dragoman.wire.overlay import fields_of
from dragoman.wire.stream_encoding import CORRECTED, INTERRUPTED, EventEncoder

_FAILED = events.ChoiceFinish(FinishReason.ERROR, "failed")
_UNEXPLAINED = events.StreamError("the model failed while it answered")
_UNFINISHED = frozenset({None, "queued", "in_progress"})
_ENDS = {"incomplete": "response.incomplete", "failed": "response.failed",
         "cancelled": "response.incomplete"}  # fmt: skip


class StreamEncoder(EventEncoder):
    """Writes one response and its items."""

    _dialect = NAME
    _answers: ClassVar[type[Answer]] = Answer

    def __init__(self) -> None:
        self._answer = self._answers()
        super().__init__(self._answer.writing)
        self._has_begun = False
        self._first_error: events.StreamError | None = None
        self._parts: dict[Hashable, PartWriter] = {}
        self._places: list[int] = []  # of each part that is written, which of the answer's it is
        self._count = 0  # the answer's parts so far
        self._items: list[ItemWriter] = []
        self._latest: ItemWriter | None = None
        self._calls = MessageAccumulator()  # tells which call a piece belongs to, and its id
        self._waiting: tuple[Hashable, ToolCall] | None = None  # a call, for the rest of its head

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return pointed_back(super().repairs, {0: self._places})

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far, each thing once."""
        return pointed_back(super().losses, {0: self._places})

    def _close(self) -> bytes:
        """What to send when no more events come: a failure, if it is not complete (G1)."""
        return b"" if self._is_over else self._failed(self._first_error or INTERRUPTED)

    # --- the response

    def _started(self, event: events.ResponseStart) -> bytes:
        self._calls.add(event)
        self._answer.came_from(self._start.origin)
        # Azure's preamble to Chat tells nothing yet, other servers' first chunk half of it.
        is_enough = bool(self._start.id and self._start.model)
        return self._begun() if is_enough else b""

    def _begun(self) -> bytes:
        """The first two events, as soon as something is known (G3)."""
        if self._has_begun:
            return b""
        self._has_begun = True
        if not self._start.id:
            self._start = self._start.replace(id=f"resp_{self._answer.id}")
        body = self._body(None) | {"output": [], "usage": None, "status": "in_progress"}
        event = self._answer.event
        return b"".join(
            [event(f"response.{kind}", response=body) for kind in ("created", "in_progress")]
        )

    def _body(self, end: events.ChoiceFinish | None) -> Body:
        """The response without its items."""
        start = self._start
        message = make_message(Role.ASSISTANT, id=self._answer.id, origin=start.origin)
        choice = Choice(0, message)
        if end is not None:
            choice = Choice(0, message, end.finish, end.finish_raw)
        response = Response(
            choices=(choice,),
            usage=self._usage,
            model=start.model,
            id=start.id,
            created_at=start.created_at,
            extras=start.extras,
        )
        body = encode_body(response, [])
        model = body.get("model")
        named = {"id": start.id, "object": "response", "model": model if type(model) is str else ""}
        return {**body, **named}

    def _output(self) -> list[Body]:
        found = [item.body() for item in self._items if item.index is not None]
        return [body for body in found if body is not None]

    def _usage_update(self, event: events.UsageUpdate) -> bytes:
        super()._usage_update(event)
        return self._rested() + self._begun()

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        super()._choice_finish(event)
        self._answer.is_cut_off = event.finish.is_cut_off
        if not has_word(event.finish):
            self._lose("choices[0].finish", "this reason has no word here")
        written = self._begun() + self._pending() + self._rested()
        return written if self._first_error is None else written + self._failed(self._first_error)

    def _put_logprobs(self, output: list[Body]) -> None:
        """Others tell them at the end: the last event has them, when the text is written."""
        logprobs = None if self._finish is None else self._finish.logprobs
        origin = self._start.origin
        if logprobs is not None and (origin is None or origin.dialect != NAME):
            for loss in put_probabilities(logprobs, output):
                self._lose(loss.path, loss.reason)

    def _end(self) -> bytes:
        written = self._begun() + self._pending()
        written += b"".join([item.end() for item in self._items])
        body = self._body(self._finish) | {"output": self._output()}
        self._put_logprobs(body["output"])
        status = body.get("status")
        if type(status) is not str or status in _UNFINISHED:
            status = body["status"] = "completed"
        elif status == "failed" and not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(_UNEXPLAINED)
        kind = _ENDS.get(status, "response.completed")
        return written + self._answer.event(kind, response=body)

    # --- its failure

    def _stream_error(self, event: events.StreamError) -> bytes:
        """An error; the provider's own event is followed by the failure of the response."""
        wire = fields_of(event.extras, NAME)
        if not wire or self._first_error is not None:
            return self._failed(event)
        self._first_error = event
        return self._begun() + self._answer.event("error", **wire)

    def _failed(self, error: events.StreamError) -> bytes:
        written = self._begun() + self._pending()
        self._is_over = True
        end = self._finish or _FAILED
        body = self._body(end if end.finish is FinishReason.ERROR else _FAILED)
        body |= {"status": "failed", "output": self._output()}
        if not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(error)
        return written + self._answer.event("response.failed", response=body)

    # --- its parts

    def _part_start(self, event: events.PartStart) -> bytes:
        return self._begun() + self._pending() + self._begin(event.index, event.part)

    def _begin(self, key: Hashable, begun: AnyPart) -> bytes:
        """A part of the answer begins."""
        self._count += 1
        return self._placed(key, begun, self._count - 1)

    def _placed(self, key: Hashable, begun: AnyPart, place: int) -> bytes:
        """A part begins, in the item of the one before it or in its own."""
        latest, written = self._latest, b""
        if latest is None or latest.is_done or not self._goes_on(latest, begun):
            if latest is not None and (latest.is_stopped or latest.may_end):
                written = latest.end()
            latest = self._latest = ItemWriter(self._answer, len(self._places))
            self._items.append(latest)
        part, shown = latest.start(len(self._places), begun)
        self._places.append(place)
        self._parts[key] = part
        return written + shown

    def _goes_on(self, item: ItemWriter, part: AnyPart) -> bool:
        return item.last is not None and self._answer.writing.continues(part, item.last)

    def _part_delta(self, event: PartDelta) -> bytes:
        part = self._parts.get(event.index)
        if part is not None and not part.item.is_done and not part.is_stopped:
            return part.item.grow(part, event)
        written = self._begun() + self._pending()
        if part is None:  # a server that forgot to announce it: text is the likeliest
            written += self._begin(event.index, Text(""))
        elif not event.text:  # a late source, or seal: the end of the response has it
            part.grown.grow(event)
            return written
        elif not part.item.may_end:
            self._answer.lose(part.number, TOO_LATE)
            return written
        else:
            written += self._continued(event.index, part)
        part = self._parts[event.index]
        return written + part.item.grow(part, event)

    def _continued(self, index: int, part: PartWriter) -> bytes:
        """An item for more of a text whose own has ended, since another had begun meanwhile."""
        state = part.state
        more: AnyPart = Text("", origin=state.origin)
        if isinstance(state, Refusal):
            more = Refusal("", origin=state.origin)
        elif isinstance(state, Thinking):
            more = Thinking("", form=state.form, origin=state.origin)
        place = self._places[part.number]
        written = self._placed(index, more, place)
        rest = self._parts[index]
        rest.before = (part.before or "") + text_of(state)
        return written

    def _part_stop(self, event: events.PartStop) -> bytes:
        written = self._begun()
        part = self._parts.get(event.index)
        if part is None:
            if event.part is None:
                return written
            written += self._pending() + self._begin(event.index, event.part)
            part = self._parts[event.index]
        item = part.item
        written += item.stop(part, self._rest_of(part, event.part))
        is_last = item is not self._latest or not item.may_go_on
        return written + item.end() if item.is_stopped and is_last else written

    def _rest_of(self, part: PartWriter, final: AnyPart | None) -> AnyPart | None:
        """The final form of a part, which is of the whole of it, for what came after its item."""
        state, before = part.state, part.before
        if before is None or final is None or type(final) is not type(state):
            return final
        whole = text_of(final)
        if not whole.startswith(before):
            self._answer.lose(part.number, CORRECTED)
            return None
        return state.replace(text=whole[len(before) :])

    def _rested(self) -> bytes:
        """The end of an item that nothing more was said of."""
        latest = self._latest
        return latest.end() if latest is not None and latest.is_stopped else b""

    # --- calls in pieces

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        """A piece of a call; its id and its name may take several pieces (W7, W8)."""
        place, head = self._calls.add_call(event)
        key, more = ("call", place), event.arguments_delta
        written, part = self._begun(), self._parts.get(key)
        if part is None:
            if self._waiting is None or self._waiting[0] != key:
                written += self._pending()
            self._waiting = (key, head)
            if not more:
                return written
            written += self._pending()
            part = self._parts[key]
        return written + part.item.grow(part, PartDelta(0, more)) if more else written

    def _pending(self) -> bytes:
        """The beginning of the call whose head was waited for."""
        waiting, self._waiting = self._waiting, None
        return b"" if waiting is None else self._begin(*waiting)

    def _part_flow(self, event: PartDelta) -> Flow | None:
        part = self._parts.get(event.index)
        return None if part is None else part.item.flow(part, event)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        part, kept = self._parts.get(("call", self._calls.place_of(event))), self._calls.texts_of
        flow = None if part is None else part.item.flow(part, event)
        return None if flow is None else flow.beside(*kept(event))

    # --- what else there is

    def _opaque(self, payload: Body) -> bytes | None:
        kind = payload.get("type")
        if type(kind) is not str or not is_event_name(kind) or kind in EVENTS:
            return None
        body = dict(payload)
        item = self._answer.placed(body)
        if item is not None:
            body["output_index"] = item.index
            if "item_id" in body:
                body["item_id"] = item.id
            return item.progress() + self._answer.whole(body)
        if {"item_id", "output_index"} & body.keys():
            return None
        return self._begun() + self._answer.whole(body)
