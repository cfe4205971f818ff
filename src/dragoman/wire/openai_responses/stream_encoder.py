"""Stream encoder: canonical events to server-sent events.

The format (W33, W34): the response begins, each item begins, grows and ends at its own index
(W35), and the last event repeats everything. Several items may be open at the same time. An item
ends with its last part or, if another part might still belong to it, with the next event.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.cut_calls import cut_finish
from dragoman.wire.framing import is_event_name
from dragoman.wire.fronts import pointed_back
from dragoman.wire.lane.flows import Flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.openai_responses.response import (
    encode_body,
    end_beside,
    has_equivalent,
    is_incomplete,
    is_own,
    put_logprobs,
)
from dragoman.wire.openai_responses.stream import EVENTS, encode_failure
from dragoman.wire.openai_responses.stream_item_writers import (
    LATE_CONTENT,
    Body,
    ItemWriter,
    OutputWriter,
    PartWriter,
    text_of,
)
from dragoman.wire.overlay import fields_of
from dragoman.wire.stream_encoding import CORRECTED, INTERRUPTED, EventEncoder, is_carrier

_FAILED = events.ChoiceFinish(FinishReason.ERROR, "failed")
_UNKNOWN_FAILURE = events.StreamError("the model failed during its response")
_UNFINISHED = frozenset({None, "queued", "in_progress"})
_ERROR = {"type": "error", "sequence_number": 0}
_ENDS = {"incomplete": "response.incomplete", "failed": "response.failed",
         "cancelled": "response.incomplete"}  # fmt: skip


class StreamEncoder(EventEncoder):
    """Encodes one response and its items."""

    _dialect = NAME
    _output_writer: ClassVar[type[OutputWriter]] = OutputWriter

    def __init__(self, message_id: str | None = None) -> None:
        self._writer = self._output_writer(message_id)
        super().__init__(self._writer.writing)
        self._has_begun = False
        self._first_error: events.StreamError | None = None
        self._parts: dict[Hashable, PartWriter] = {}
        self._places: list[int] = []  # by index of a written part: its index in the response
        self._count = 0  # parts of the response so far
        self._items: list[ItemWriter] = []
        self._latest: ItemWriter | None = None
        self._last: ItemWriter | None = None  # the latest that is content
        self._calls = MessageAccumulator()  # maps pieces to calls and their ids
        self._waiting: tuple[Hashable, ToolCall] | None = (
            None  # a call whose id and name may be incomplete
        )

    @property
    def repairs(self) -> list[Repair]:
        """The repairs so far."""
        return pointed_back(super().repairs, {0: self._places})

    @property
    def losses(self) -> list[Loss]:
        """The losses so far, each once."""
        return pointed_back(super().losses, {0: self._places})

    def _close(self) -> bytes:
        """The bytes to send when the events end: a failure if the response is incomplete (G1)."""
        return b"" if self._is_over else self._failed(self._first_error or INTERRUPTED)

    # --- the response

    def _started(self, event: events.ResponseStart) -> bytes:
        self._calls.add(event)
        self._writer.writing.origin = self._start.origin
        # Azure's Chat preamble has no id or model yet, and some servers' first chunk only one.
        is_enough = bool(self._start.id and self._start.model)
        return self._begun() if is_enough else b""

    def _begun(self) -> bytes:
        """The first two events, sent as soon as possible (G3)."""
        if self._has_begun:
            return b""
        self._has_begun = True
        if not self._start.id:
            self._start = self._start.replace(id=f"resp_{self._writer.id}")
        body = self._body(None)
        body["output"], body["usage"], body["status"] = [], None, "in_progress"
        told = dumps({"response": body})
        event = self._writer.encoded
        return event("response.created", told) + event("response.in_progress", told)

    def _body(self, end: events.ChoiceFinish | None) -> Body:
        """The response without its items."""
        return self._encoded(end, self._usage)

    def _encoded(self, end: events.ChoiceFinish | None, usage: Usage | None) -> Body:
        start = self._start
        body = encode_body(start, end, usage, [])
        body["id"], body["object"] = start.id, "response"
        if type(body.get("model")) is not str:
            body["model"] = ""
        return body

    def _output(self) -> list[Body]:
        found = [item.body() for item in self._items if item.index is not None]
        return [body for body in found if body is not None]

    def _usage_update(self, event: events.UsageUpdate) -> bytes:
        super()._usage_update(event)
        last = self._last
        if last is not None and self._finish is None and last.may_be_cut:
            return self._begun()
        return self._end_of_stopped_item() + self._begun()

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        if not is_own(self._start.origin):
            finish = end_beside(event.finish, [part.state for part in self._parts.values()])
            event = event.replace_unchecked(finish=finish)
        super()._choice_finish(event)
        self._writer.is_cut_off = event.finish.is_cut_off
        self._note_cut(event)
        if not has_equivalent(event.finish):
            self._lose("choices[0].finish", "this finish reason has no equivalent")
        written = self._begun() + self._pending() + self._end_of_stopped_item()
        return written if self._first_error is None else written + self._failed(self._first_error)

    def _note_cut(self, end: events.ChoiceFinish) -> None:
        """Of a response that is incomplete, the last item is, too."""
        last = self._last
        if last is not None and is_incomplete(end.finish) and last.may_be_cut:
            last.is_cut = True

    def _put_logprobs(self, output: list[Body]) -> None:
        """Add other dialects' log probabilities, which come at the end, to the last event."""
        logprobs = None if self._finish is None else self._finish.logprobs
        origin = self._start.origin
        if logprobs is not None and (origin is None or origin.dialect != NAME):
            for loss in put_logprobs(logprobs, output):
                self._lose(loss.path, loss.reason)

    def _end(self) -> bytes:
        written = self._begun() + self._pending()
        written += b"".join([item.end() for item in self._items])
        if self._writer.writing.has_cut_calls:
            end = self._finish or events.ChoiceFinish(FinishReason.LENGTH)
            self._finish = end.replace(finish=cut_finish(end.finish))
        body = self._body(self._finish)
        body["output"] = self._output()
        self._put_logprobs(body["output"])
        status = body.get("status")
        if type(status) is not str or status in _UNFINISHED:
            status = body["status"] = "completed"
        elif status == "failed" and not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(_UNKNOWN_FAILURE)
        kind = _ENDS.get(status, "response.completed")
        return written + self._writer.event(kind, {"response": body})

    # --- errors

    def _stream_error(self, event: events.StreamError) -> bytes:
        """Encode an error; an `error` event of this dialect is followed by `response.failed`."""
        wire = fields_of(event.extras, NAME)
        if not wire or self._first_error is not None:
            return self._failed(event)
        self._first_error = event
        return self._begun() + self._writer.whole({**_ERROR, **wire, **_ERROR})

    def _failed(self, error: events.StreamError) -> bytes:
        written = self._begun() + self._pending()
        self._is_over = True
        for item in self._items:
            item.is_cut = item.is_cut or (item.may_be_cut and not item.is_done)
        end = self._finish or _FAILED
        body = self._body(end if end.finish is FinishReason.ERROR else _FAILED)
        body |= {"status": "failed", "output": self._output()}
        if not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(error)
        return written + self._writer.event("response.failed", {"response": body})

    # --- parts

    def _part_start(self, event: events.PartStart) -> bytes:
        return self._begun() + self._pending() + self._begin(event.index, event.part)

    def _begin(self, key: Hashable, begun: AnyPart) -> bytes:
        """Start a part of the response."""
        self._count += 1
        return self._placed(key, begun, self._count - 1)

    def _placed(self, key: Hashable, begun: AnyPart, place: int) -> bytes:
        """Start a part, in the item of the previous part or in a new one."""
        latest, written = self._latest, b""
        if latest is None or latest.is_done or not self._continues(latest, begun):
            is_over = latest is not None and (latest.is_stopped or latest.may_end or latest.is_held)
            is_waiting = latest is not None and latest.may_be_cut and is_carrier(key)
            if latest is not None and is_over and not is_waiting:
                written = latest.end()
            latest = self._latest = ItemWriter(self._writer, len(self._places))
            self._items.append(latest)
            if not is_carrier(key):
                self._last = latest
        part, shown = latest.start(len(self._places), begun)
        self._places.append(place)
        self._parts[key] = part
        return written + shown

    def _continues(self, item: ItemWriter, part: AnyPart) -> bool:
        return item.last is not None and self._writer.writing.continues(part, item.last)

    def _part_delta(self, event: PartDelta) -> bytes:
        part = self._parts.get(event.index)
        if part is not None and not part.is_stopped and not (item := part.item).is_done:
            return item.grow(part, event)
        written = self._begun() + self._pending()
        if part is None:  # not announced by the server: most likely text
            written += self._begin(event.index, Text(""))
        elif not event.text:  # a late citation or signature: sent in the last event
            part.grown.grow(event)
            return written
        elif not part.item.may_end:
            self._writer.lose(part.number, LATE_CONTENT)
            return written
        else:
            written += self._continued(event.index, part)
        part = self._parts[event.index]
        return written + part.item.grow(part, event)

    def _continued(self, index: int, part: PartWriter) -> bytes:
        """Start a new item for the rest of a text whose item was ended early for another part."""
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
        item, final = part.item, self._rest_of(part, event.part)
        is_latest = item in {self._latest, self._last}
        may_be_cut = is_latest and self._finish is None and item.may_be_cut
        if may_be_cut and (final is None or not text_of(final)) and item.lacks_arguments(part):
            item.is_held = True
            return written
        written += item.stop(part, final)
        if may_be_cut or (is_latest and item.may_go_on):
            return written
        return written + item.end() if item.is_stopped else written

    def _rest_of(self, part: PartWriter, final: AnyPart | None) -> AnyPart | None:
        """The share of a part's final form that belongs to the current item."""
        before = part.before
        if before is None or final is None:
            return final
        state = part.state
        if type(final) is not type(state):
            return final
        whole = text_of(final)
        if not whole.startswith(before):
            self._writer.lose(part.number, CORRECTED)
            return None
        return state.replace(text=whole[len(before) :])

    def _end_of_stopped_item(self) -> bytes:
        """End the latest items if all their parts have stopped."""
        ended = dict.fromkeys([self._last, self._latest])
        found = [item for item in ended if item is not None and (item.is_stopped or item.is_held)]
        return b"".join([item.end() for item in found])

    # --- calls in pieces

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        """Encode a piece of a call, whose id and name may come in several pieces (W7, W8)."""
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
        """Start the call that was waiting for its id and name."""
        waiting, self._waiting = self._waiting, None
        return b"" if waiting is None else self._begin(*waiting)

    def _part_flow(self, event: PartDelta) -> Flow | None:
        part = self._parts.get(event.index)
        return None if part is None else part.item.flow(part, event)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        part, kept = self._parts.get(("call", self._calls.place_of(event))), self._calls.texts_of
        flow = None if part is None else part.item.flow(part, event)
        return None if flow is None else flow.beside(*kept(event))

    # --- unknown events

    def _opaque(self, payload: Body) -> bytes | None:
        kind = payload.get("type")
        if type(kind) is not str or not is_event_name(kind) or kind in EVENTS:
            return None
        body = dict(payload)
        item = self._writer.placed(body)
        if item is not None:
            body["output_index"] = item.index
            if "item_id" in body:
                body["item_id"] = item.id
            return item.progress() + self._writer.whole(body)
        if {"item_id", "output_index"} & body.keys():
            return None
        return self._begun() + self._writer.whole(body)
