"""Streams, from our events to server-sent ones.

The grammar (W33, W34): the response begins, each item begins, grows and ends in a place of its own
(W35), and the last event has all of it once more. Items may be open side by side. An item ends
with its last part, or, where another part might still belong to it, with the next event.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, ClassVar

from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    OpaqueEvent,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
    StreamError,
    UsageUpdate,
)
from dragoman.model.messages import make_message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.framing import is_event_name
from dragoman.wire.fronts import pointed_back
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.openai_responses.response import PROBABILITIES, encode
from dragoman.wire.openai_responses.stream_answer import Answer, Body
from dragoman.wire.openai_responses.stream_calls import Heads
from dragoman.wire.openai_responses.stream_decoder import UNDERSTOOD
from dragoman.wire.openai_responses.stream_errors import INTERRUPTED, UNEXPLAINED, encode_failure
from dragoman.wire.openai_responses.stream_kinds import text_of
from dragoman.wire.openai_responses.stream_writers import TOO_LATE, ItemWriter, PartWriter
from dragoman.wire.overlay import overlay
from dragoman.wire.streams import CORRECTED

_FAILED = ChoiceFinish(FinishReason.ERROR, "failed")
_UNFINISHED = frozenset({None, "queued", "in_progress"})
_ENDS = {"incomplete": "response.incomplete", "failed": "response.failed",
         "cancelled": "response.incomplete"}  # fmt: skip


class StreamEncoder:
    """Writes one response as a stream; `feed` gives the bytes to send now."""

    def __init__(self) -> None:
        self._answer = Answer()
        self._start = ResponseStart()
        self._has_begun = False
        self._usage: Usage | None = None
        self._finish: ChoiceFinish | None = None
        self._error: StreamError | None = None
        self._parts: dict[Hashable, PartWriter] = {}
        self._places: list[int] = []  # of each part that is written, which of the answer's it is
        self._count = 0  # the answer's parts so far
        self._items: list[ItemWriter] = []
        self._latest: ItemWriter | None = None
        self._heads = Heads()
        self._is_over = False

    @property
    def repairs(self) -> list[Repair]:
        """What was changed so that it can be said, so far."""
        return pointed_back(self._answer.losses.repairs, {0: self._places})

    @property
    def losses(self) -> list[Loss]:
        """What could not be said so far."""
        return pointed_back(self._answer.losses.all, {0: self._places})

    def feed(self, event: Event) -> bytes:
        """What to send for an event; nothing, where more has to come first."""
        if self._is_over:
            self._lose("events", "what comes after the end of a response is left out")
            return b""
        if getattr(event, "choice", 0):
            self._lose(f"choices[{event.choice}]", "this dialect gives one answer")  # type: ignore[union-attr]  # it has one
            return b""
        return self._HANDLERS[type(event)](self, event)

    def close(self) -> bytes:
        """What to send when no more events come: a failure, if it is not complete (G1)."""
        return b"" if self._is_over else self._failed(self._error or INTERRUPTED)

    def _lose(self, path: str, reason: str) -> None:
        self._answer.losses.add(path, reason)

    # --- the response

    def _response_start(self, event: ResponseStart) -> bytes:
        self._start = self._start.filled(event)
        self._heads.start(event)
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
        event = self._answer.frames.event
        return event("response.created", response=body) + event(
            "response.in_progress", response=body
        )

    def _body(self, end: ChoiceFinish | None) -> Body:
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
        body = encode(response).body
        return {**body, "id": start.id, "object": "response", "model": _model(body)}

    def _output(self) -> list[Body]:
        found = [item.body() for item in self._items if item.index is not None]
        return [body for body in found if body is not None]

    def _usage_update(self, event: UsageUpdate) -> bytes:
        self._usage = event.usage
        return self._rested() + self._begun()

    def _choice_finish(self, event: ChoiceFinish) -> bytes:
        self._finish = event
        self._answer.is_cut_off = event.finish.is_cut_off
        if event.logprobs is not None:
            self._lose("choices[0].logprobs", PROBABILITIES)
        written = self._begun() + self._pending() + self._rested()
        return written if self._error is None else written + self._failed(self._error)

    def _response_end(self, _event: ResponseEnd) -> bytes:
        written = self._begun() + self._pending()
        written += b"".join([item.end() for item in self._items])
        body = self._body(self._finish) | {"output": self._output()}
        status = body.get("status")
        if type(status) is not str or status in _UNFINISHED:
            status = body["status"] = "completed"
        elif status == "failed" and not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(UNEXPLAINED)
        self._is_over = True
        kind = _ENDS.get(status, "response.completed")
        return written + self._answer.frames.event(kind, response=body)

    # --- its failure

    def _stream_error(self, event: StreamError) -> bytes:
        """An error; the provider's own event is followed by the failure of the response."""
        wire = overlay(event.extras, NAME)
        if not wire or self._error is not None:
            return self._failed(event)
        self._error = event
        return self._begun() + self._answer.frames.event("error", **wire)

    def _failed(self, error: StreamError) -> bytes:
        written = self._begun() + self._pending()
        self._is_over = True
        end = self._finish or _FAILED
        body = self._body(end if end.finish is FinishReason.ERROR else _FAILED)
        body |= {"status": "failed", "output": self._output()}
        if not isinstance(body.get("error"), dict):
            body["error"] = encode_failure(error)
        return written + self._answer.frames.event("response.failed", response=body)

    # --- its parts

    def _part_start(self, event: PartStart) -> bytes:
        return self._begun() + self._pending() + self._started(event.index, event)

    def _started(self, key: Hashable, event: PartStart) -> bytes:
        """A part of the answer begins."""
        self._count += 1
        return self._placed(key, event, self._count - 1)

    def _placed(self, key: Hashable, event: PartStart, place: int) -> bytes:
        """A part begins, in the item of the one before it or in its own."""
        latest, written = self._latest, b""
        if latest is None or latest.is_done or not self._goes_on(latest, event.part):
            if latest is not None and (latest.is_stopped or latest.may_end):
                written = latest.end()
            latest = self._latest = ItemWriter(self._answer, len(self._places))
            self._items.append(latest)
        part, shown = latest.start(len(self._places), event)
        self._places.append(place)
        self._parts[key] = part
        return written + shown

    def _goes_on(self, item: ItemWriter, part: AnyPart) -> bool:
        return item.last is not None and self._answer.continues(part, item.last)

    def _part_delta(self, event: PartDelta) -> bytes:
        part = self._parts.get(event.index)
        if part is not None and not part.item.is_done and not part.is_stopped:
            return part.item.grow(part, event)
        written = self._begun() + self._pending()
        if part is None:  # a server that forgot to announce it: text is the likeliest
            written += self._started(event.index, PartStart(event.index, Text("")))
        elif not event.text:  # a late source, or seal: the end of the response has it
            part.folded.add(event)
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
        written = self._placed(index, PartStart(index, more), place)
        rest = self._parts[index]
        rest.before = (part.before or "") + text_of(state)
        return written

    def _part_stop(self, event: PartStop) -> bytes:
        written = self._begun()
        part = self._parts.get(event.index)
        if part is None:
            if event.part is None:
                return written
            written += self._pending() + self._started(
                event.index, PartStart(event.index, event.part)
            )
            part = self._parts[event.index]
        item = part.item
        written += item.stop(part, self._stop_of_rest(part, event))
        is_last = item is not self._latest or not item.may_go_on
        return written + item.end() if item.is_stopped and is_last else written

    def _stop_of_rest(self, part: PartWriter, event: PartStop) -> PartStop:
        """The last word on a part, which is on the whole of it, for what came after its item."""
        final, before = event.part, part.before
        if before is None or final is None or type(final) is not type(part.state):
            return event
        whole = text_of(final)
        if not whole.startswith(before):
            self._answer.lose(part.number, CORRECTED)
            return event.replace(part=None)
        return event.replace(part=part.state.replace(text=whole[len(before) :]))

    def _rested(self) -> bytes:
        """The end of an item that nothing more was said of."""
        latest = self._latest
        return latest.end() if latest is not None and latest.is_stopped else b""

    # --- calls in pieces

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        key = self._heads.key(event)
        written, part = self._begun(), self._parts.get(key)
        if part is None:
            if not self._heads.is_waiting(key):
                written += self._pending()
            self._heads.wait(key)
            if not event.arguments_delta:
                return written
            written += self._pending()
            part = self._parts[key]
        if not event.arguments_delta:
            return written
        return written + part.item.grow(part, PartDelta(0, event.arguments_delta))

    def _pending(self) -> bytes:
        """The call whose head was waited for."""
        waiting = self._heads.take()
        return b"" if waiting is None else self._started(waiting[0], PartStart(0, waiting[1]))

    # --- what else there is

    def _opaque_event(self, event: OpaqueEvent) -> bytes:
        payload = event.payload
        kind = payload.get("type") if isinstance(payload, dict) else None
        if (
            event.dialect == NAME
            and type(kind) is str
            and is_event_name(kind)
            and kind not in UNDERSTOOD
        ):
            body = dict(payload)
            item = self._answer.placed(body)
            if item is not None:
                body["output_index"] = item.index
                if "item_id" in body:
                    body["item_id"] = item.id
                return item.progress() + self._answer.frames.whole(body)
            if not {"item_id", "output_index"} & body.keys():
                return self._begun() + self._answer.frames.whole(body)
        self._lose("events", "an event that has no place here is left out")
        return b""

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], bytes]]] = {
        ResponseStart: _response_start,
        PartStart: _part_start,
        PartDelta: _part_delta,
        PartStop: _part_stop,
        ToolCallDelta: _tool_call_delta,
        UsageUpdate: _usage_update,
        ChoiceFinish: _choice_finish,
        StreamError: _stream_error,
        OpaqueEvent: _opaque_event,
        ResponseEnd: _response_end,
    }


def _model(body: Body) -> str:
    model = body.get("model")
    return model if type(model) is str else ""
