"""Streams behind a front: what `fronts` does to a whole answer, done to its events on the way.

Text is passed on as it comes. A part's state is complete when the part stops: then thinking gets
its seal, and other parts their carrier. Where the wire has items, a part stops with itself and once
more with its item (W26), so its end waits for the next event. A call whose state is known at its
start has the carrier before it, as in a whole answer; a later word on it comes in another one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from dragoman.model.content import AnyPart
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
)
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.wire.fronts import WHOLE, Front, is_shown, stateless, whole_envelope
from dragoman.wire.losses import Loss
from dragoman.wire.sealing_parts import OpenChoice, OpenPart
from dragoman.wire.streams import StreamEncoder


class SealingEncoder:
    """An encoder that writes the state of another dialect's parts in envelopes."""

    def __init__(self, encoder: StreamEncoder, front: Front) -> None:
        self._encoder = encoder
        self._front = front
        self._origin: Origin | None = None
        self._choices: dict[int, OpenChoice] = {}
        self._carriers = 0
        # The part that grows, and where its pieces are kept: nearly all events are about it.
        self._flow: tuple[int, int, list[str] | None] | None = None
        self._flowing: tuple[OpenChoice, OpenPart] | None = None

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be said so far."""
        return self._encoder.losses

    def feed(self, event: Event) -> bytes:
        """The bytes to send now."""
        if type(event) is PartDelta:
            flow = self._flow
            if flow is None or event.index != flow[0] or event.choice != flow[1]:
                return self._part_delta(event)
            if not event.text or _is_more_than_text(event):
                return self._part_delta(event)
            if flow[2] is not None:
                flow[2].append(event.text)
            return self._encoder.feed(event)
        self._rest()
        handle = self._HANDLERS.get(type(event))
        return self._encoder.feed(event) if handle is None else handle(self, event)

    def _rest(self) -> None:
        """Note how far the part has grown, since something else comes."""
        if self._flowing is not None:
            choice, growing = self._flowing
            choice.count(growing)
        self._flow = self._flowing = None

    def close(self) -> bytes:
        """The last bytes."""
        return self._encoder.close()

    def _choice(self, number: int) -> OpenChoice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = OpenChoice(self._front, number, self._origin)
        return choice

    # --- one event each

    def _response_start(self, event: ResponseStart) -> bytes:
        self._origin = event.origin or self._origin
        for choice in self._choices.values():
            choice.sealer.origin = self._origin
        return self._encoder.feed(event)

    def _part_start(self, event: PartStart) -> bytes:
        choice = self._choice(event.choice)
        return self._ends(choice) + self._started(choice, event)

    def _started(self, choice: OpenChoice, event: PartStart) -> bytes:
        sealer, part = choice.sealer, event.part
        choice.begun.add(event.index)
        growing = OpenPart(event.index, part, sealer.place)
        sealer.count(part)
        home = sealer.home_of(part)
        if home is None and not self._may_get_state(choice, part):
            return self._encoder.feed(event)
        choice.parts[event.index] = growing
        if isinstance(part, ToolCall):
            return self._start_call(choice, growing, home, part)
        if home is not None and not is_shown(part):
            return b""  # there may be nothing to show
        return self._begin(choice, growing, part)

    def _may_get_state(self, choice: OpenChoice, part: AnyPart) -> bool:
        """Whether a part is another dialect's, so that its state may yet come."""
        origin = part.origin or choice.sealer.origin
        return origin is not None and origin.dialect != self._front.origin.dialect

    def _begin(self, choice: OpenChoice, growing: OpenPart, part: AnyPart) -> bytes:
        """Show the client what there is of a part."""
        sealer = choice.sealer
        growing.begin(sealer.thought(part) if isinstance(part, Thinking) else stateless(part))
        return self._encoder.feed(PartStart(growing.index, growing.shown, choice.number))

    def _start_call(
        self, choice: OpenChoice, growing: OpenPart, home: Origin | None, part: ToolCall
    ) -> bytes:
        made: tuple[AnyPart, ...] = (part,)
        if home is not None and part.kind == "function":
            growing.state = part
            made = choice.sealer.sealed(part)
        *before, shown = made
        growing.begin(shown)
        written = b"".join([self._carry(choice, carrier) for carrier in before])
        return written + self._encoder.feed(PartStart(growing.index, shown, choice.number))

    def _carry(self, choice: OpenChoice, carrier: AnyPart) -> bytes:
        """A part of its own for an envelope; no part of the answer has a number below zero."""
        self._carriers -= 1
        started = self._encoder.feed(PartStart(self._carriers, carrier, choice.number))
        return started + self._encoder.feed(PartStop(self._carriers, choice=choice.number))

    def _part_delta(self, event: PartDelta) -> bytes:
        choice = self._choices.get(event.choice)
        if choice is None:
            return self._encoder.feed(event)
        self._rest()
        begun = self._ends(choice) if choice.ended else b""
        growing, text = choice.parts.get(event.index), event.text
        if growing is None:
            self._flow = (event.index, event.choice, None)
            return begun + self._encoder.feed(event)
        growing.grown.grow(event)
        self._flowing = (choice, growing)
        if not growing.is_begun:
            if not text or isinstance(growing.shown, WHOLE):
                return begun
            begun += self._begin(choice, growing, growing.grown.built())
        else:
            begun += self._grown(growing, event)
        self._flow = (event.index, event.choice, growing.grown.pieces)
        return begun

    def _grown(self, growing: OpenPart, event: PartDelta) -> bytes:
        """More of a part that the client sees, without what goes into the envelope."""
        if event.signature is not None or event.data is not None or event.extras is not EMPTY:
            if isinstance(growing.shown, Thinking):
                event = PartDelta(event.index, event.text, choice=event.choice)
            else:
                event = event.replace(signature=None)
            if not (event.text or event.data or event.citations or event.extras):
                return b""
        return self._encoder.feed(event)

    def _part_stop(self, event: PartStop) -> bytes:
        choice, index = self._choice(event.choice), event.index
        growing = choice.parts.get(index) or choice.ended.get(index)
        if growing is not None:
            choice.parts.pop(index, None)
            growing.final = event.part or growing.final
            if growing.grown.part.item_id is None:
                return self._ends(choice) + self._stop(choice, growing)
            choice.ended[index] = growing
            return b""
        if index in choice.sealed:
            return b""  # with what was known of it
        home = None if event.part is None else choice.sealer.home_of(event.part)
        if event.part is None or home is None:
            return self._encoder.feed(event)
        if index in choice.begun:
            return self._stop_late(choice, event.part, home)
        return self._started(choice, PartStart(index, event.part, event.choice)) + self._part_stop(
            event
        )

    def _stop_late(self, choice: OpenChoice, part: AnyPart, home: Origin) -> bytes:
        """The state of a part that has ended before."""
        envelope = choice.sealer.envelope(part, home, choice.sealer.place)
        return b"" if envelope is None else self._carry(choice, choice.sealer.carrier(envelope))

    def _ends(self, choice: OpenChoice) -> bytes:
        """The ends that were waiting."""
        if not choice.ended:
            return b""
        ended, choice.ended = choice.ended, {}
        return b"".join([self._stop(choice, growing) for growing in ended.values()])

    def _stop(self, choice: OpenChoice, growing: OpenPart) -> bytes:
        """The end of a part: now its state is known."""
        final = growing.final
        whole = growing.grown.built() if final is None else final
        home = choice.sealer.home_of(whole)
        if home is not None:
            choice.sealed.add(growing.index)
        if not growing.is_begun:
            return self._stop_unseen(choice, growing, whole, home)
        if isinstance(whole, Thinking) and isinstance(growing.shown, Thinking):
            return self._stop_thought(choice, growing, whole, home)
        shown = None if final is None else stateless(whole)
        if isinstance(shown, ToolCall) and isinstance(growing.shown, ToolCall):
            shown = shown.replace(
                signature=growing.shown.signature, origin=growing.shown.origin,
                wire_id=growing.shown.wire_id,
            )  # fmt: skip
        written = self._encoder.feed(PartStop(growing.index, shown, choice.number))
        if home is None or _is_same_state(growing.state, whole):
            return written
        envelope = choice.sealer.envelope(whole, home, growing.place)
        if envelope is None:
            return written
        return written + self._carry(choice, choice.sealer.carrier(envelope))

    def _stop_unseen(
        self, choice: OpenChoice, growing: OpenPart, whole: AnyPart, home: Origin | None
    ) -> bytes:
        """A part of which there was nothing to show, or nothing until now."""
        if isinstance(whole, Thinking) and whole.is_empty:
            return b""
        if is_shown(whole) or home is None:
            growing.final = whole
            return self._begin(choice, growing, whole) + self._stop(choice, growing)
        envelope = whole_envelope(whole, home, growing.place)
        if envelope is None:
            started = self._encoder.feed(PartStart(growing.index, whole, choice.number))
            return started + self._encoder.feed(PartStop(growing.index, choice=choice.number))
        return self._carry(choice, choice.sealer.carrier(envelope))

    def _stop_thought(
        self, choice: OpenChoice, growing: OpenPart, whole: Thinking, home: Origin | None
    ) -> bytes:
        index, number = growing.index, choice.number
        more = whole.text[growing.sent :]
        written = self._encoder.feed(PartDelta(index, more, choice=number)) if more else b""
        envelope = None
        if home is not None:
            envelope = choice.sealer.envelope(whole, home, growing.place)
        if envelope is not None:
            seal: dict[str, Any] = {self._front.thoughts: envelope}
            written += self._encoder.feed(PartDelta(index, choice=number, **seal))
        return written + self._encoder.feed(PartStop(index, choice=number))

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        choice = self._choice(event.choice)
        written = self._ends(choice)
        if event.id and choice.ids.get(event.index) != event.id:
            choice.sealer.count_call()
            choice.ids[event.index] = event.id
        known = choice.ids.get(event.index)
        if event.signature is None or known is None:
            return written + self._encoder.feed(event)
        call = ToolCall(known, "", raw="", signature=event.signature, extras=event.extras)
        if choice.sealer.home_of(call) is None:
            return written + self._encoder.feed(event)
        *carriers, shown = choice.sealer.sealed(call)
        written += b"".join([self._carry(choice, carrier) for carrier in carriers])
        return written + self._encoder.feed(event.replace(signature=shown.signature))

    def _choice_finish(self, event: ChoiceFinish) -> bytes:
        return self._flushed(event.choice) + self._encoder.feed(event)

    def _response_end(self, event: ResponseEnd) -> bytes:
        flushed = b"".join([self._flushed(number) for number in self._choices])
        return flushed + self._encoder.feed(event)

    def _flushed(self, number: int) -> bytes:
        """What has not been stopped and still waits."""
        choice = self._choices.get(number)
        if choice is None:
            return b""
        choice.ended |= choice.parts
        choice.parts = {}
        return self._ends(choice)

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], bytes]]] = {
        ResponseStart: _response_start,
        PartStart: _part_start,
        PartDelta: _part_delta,
        PartStop: _part_stop,
        ToolCallDelta: _tool_call_delta,
        ChoiceFinish: _choice_finish,
        ResponseEnd: _response_end,
    }


def _is_same_state(one: AnyPart | None, other: AnyPart) -> bool:
    """Whether two forms of a call have the same state."""
    return one is not None and (one.signature, one.item_id, one.extras) == (
        other.signature,
        other.item_id,
        other.extras,
    )


def _is_more_than_text(event: PartDelta) -> bool:
    return (
        event.signature is not None
        or event.data is not None
        or event.extras is not EMPTY
        or event.citations != ()
    )
