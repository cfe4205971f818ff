"""Seals opaque state in streams: what `fronts` does to a whole response, event by event.

Text is passed on as it arrives. A part's state is complete when the part stops: then thinking gets
its seal, and other parts their carrier. On wires with items, a part stops by itself and once more
with its item (W26), so its stop is delayed until the next event. A call whose state is known at its
start has the carrier before it, as in a whole response; state that arrives later gets another
carrier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.wire.fronts import (
    WHOLE,
    StateFields,
    is_shown,
    pointed_back,
    stateless,
)
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, general_path, inner_flow
from dragoman.wire.losses import Loss, Losses, Repair
from dragoman.wire.sealing_parts import OpenChoice, OpenPart
from dragoman.wire.stream_encoding import CORRECTED, EventHandler
from dragoman.wire.streams import StreamEncoder


class SealingEncoder(FlowingEncoder, EventHandler):
    """A stream encoder that writes the state of another dialect's parts in envelopes."""

    def __init__(self, encoder: StreamEncoder, front: StateFields) -> None:
        self._encoder = encoder
        self._write = general_path(encoder)
        self._front = front
        self._origin: Origin | None = None
        self._choices: dict[int, OpenChoice] = {}
        self._carriers = 0
        self._losses = Losses()
        # The current part: nearly all events are about it.
        self._flowing: tuple[OpenChoice, OpenPart] | None = None

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        return pointed_back(self._encoder.repairs, self._places)

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        return pointed_back(self._encoder.losses, self._places) + self._losses.all

    @property
    def _places(self) -> dict[int, list[int]]:
        """The original part number of each part shown to the client, by choice."""
        return {number: choice.places for number, choice in self._choices.items()}

    def write(self, event: events.Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        if self._flowing is not None:
            self._rest()
        handle = self._handlers.get(type(event))
        return self._write(event) if handle is None else handle(self, event)

    def _rest(self) -> None:
        """Record how far the current part has grown, before another event."""
        if self._flowing is not None:
            choice, growing = self._flowing
            choice.rest(growing)
        self._flowing = None

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        if self._flowing is None:
            return inner_flow(self._encoder, event)
        _, growing = self._flowing
        flow = inner_flow(self._encoder, event) if growing.is_flowing else None
        return None if flow is None else flow.beside(growing.grown.pieces)

    def _close(self) -> bytes:
        return self._encoder.close()

    def _choice(self, number: int) -> OpenChoice:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = OpenChoice(self._front, number, self._origin)
        return choice

    # --- event handlers

    def _response_start(self, event: events.ResponseStart) -> bytes:
        self._origin = event.origin or self._origin
        for choice in self._choices.values():
            choice.sealer.origin = self._origin
        return self._write(event)

    def _part_start(self, event: events.PartStart) -> bytes:
        choice = self._choice(event.choice)
        choice.sealer.following = event.part
        return self._interrupted(choice) + self._started(choice, event)

    def _interrupted(self, choice: OpenChoice) -> bytes:
        """End what another part interrupts."""
        if not choice.ended and choice.thought is None:
            return b""
        return self._ends(choice) + self._paused(choice)

    def _started(self, choice: OpenChoice, event: events.PartStart) -> bytes:
        sealer, part = choice.sealer, event.part
        choice.begun.add(event.index)
        growing = OpenPart(event.index, choice.numbered(), part, sealer.place)
        home = sealer.home_of(part)
        if home is None and not self._may_get_state(choice, part):
            written = self._shown(choice, growing, part)
        else:
            choice.parts[event.index] = growing
            if isinstance(part, ToolCall):
                written = self._start_call(choice, growing, home, part)
            elif home is not None and not is_shown(part):
                written = b""  # perhaps there is nothing to show
            else:
                written = self._begin(choice, growing, part)
        sealer.count(part)
        return written

    def _shown(self, choice: OpenChoice, growing: OpenPart, part: AnyPart) -> bytes:
        """Start the part that is shown for a part."""
        choice.places.append(growing.number)
        return self._write(events.PartStart(growing.index, part, choice.number))

    def _may_get_state(self, choice: OpenChoice, part: AnyPart) -> bool:
        """Whether a part is from another dialect, so that state may still arrive."""
        origin = part.origin or choice.sealer.origin
        return origin is not None and not choice.sealer.is_native(part, origin)

    def _begin(self, choice: OpenChoice, growing: OpenPart, part: AnyPart) -> bytes:
        """Start to show a part to the client."""
        if isinstance(part, Thinking):
            growing.begin(choice.sealer.thought(part))
            choice.thought = None if self._front.is_flat else growing
            return self._shown(choice, growing, growing.shown)
        growing.begin(stateless(part))
        return self._shown(choice, growing, growing.shown)

    def _start_call(
        self, choice: OpenChoice, growing: OpenPart, home: Origin | None, part: ToolCall
    ) -> bytes:
        made: tuple[AnyPart, ...] = (part,)
        if home is not None and part.kind == "function":
            growing.state = part
            made = choice.sealer.sealed(part)
        *before, shown = made
        growing.begin(shown)
        written = b"".join([self._carry(choice, growing.number, carrier) for carrier in before])
        return written + self._shown(choice, growing, shown)

    def _carry(self, choice: OpenChoice, number: int, carrier: AnyPart) -> bytes:
        """Emit an envelope as a part of its own, with a negative index to avoid collisions."""
        self._carriers -= 1
        choice.places.append(number)
        started = self._write(events.PartStart(self._carriers, carrier, choice.number))
        return started + self._write(events.PartStop(self._carriers, choice=choice.number))

    def _carry_state(
        self,
        choice: OpenChoice,
        number: int,
        part: AnyPart,
        home: Origin,
        place: tuple[int, int] | None,
    ) -> bytes:
        """Emit the state of a part that the client was shown, as a part of its own."""
        envelope = choice.sealer.envelope(part, home, place)
        return b"" if envelope is None else self._carry(
            choice, number, choice.sealer.carrier(envelope)
        )  # fmt: skip

    def _part_delta(self, event: PartDelta) -> bytes:
        choice = self._choice(event.choice)
        begun = self._ends(choice) if choice.ended else b""
        growing, text = choice.parts.get(event.index), event.text
        if choice.thought is not None and choice.thought is not growing:
            begun += self._paused(choice)
        if growing is None:
            self._note_unannounced(choice, event.index)
            return begun + self._write(event)
        growing.grown.grow(event)
        self._flowing = (choice, growing)
        if not growing.is_begun:
            if not text or isinstance(growing.shown, WHOLE):
                return begun
            part = growing.grown.built()
            begun += self._begin(choice, growing, part)
        else:
            begun += self._grown(growing, event)
        return begun

    def _note_unannounced(self, choice: OpenChoice, index: int) -> None:
        if index not in choice.begun:
            choice.begun.add(index)
            choice.places.append(choice.numbered())

    def _grown(self, growing: OpenPart, event: PartDelta) -> bytes:
        """Emit more of a part that the client sees, without what goes into the envelope."""
        if event.signature is not None or event.data is not None or event.extras is not EMPTY:
            if isinstance(growing.shown, Thinking):
                event = PartDelta(event.index, event.text, choice=event.choice)
            else:
                event = event.replace(signature=None)
            if not (event.text or event.data or event.citations or event.extras):
                return b""
        return self._write(event)

    def _part_stop(self, event: events.PartStop) -> bytes:
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
            return self._stop_again(choice, event)
        home = None if event.part is None else choice.sealer.home_of(event.part)
        if event.part is None or home is None:
            if event.part is not None:
                self._note_unannounced(choice, index)
            return self._write(event)
        if index in choice.begun:
            return self._stop_late(choice, event.part, home)
        return self._started(
            choice, events.PartStart(index, event.part, event.choice)
        ) + self._part_stop(event)

    def _stop_again(self, choice: OpenChoice, event: events.PartStop) -> bytes:
        """Handle another stop of a part that is already sealed."""
        if not isinstance(event.part, (Text, Refusal)):
            growing = choice.sealed[event.index]
            if isinstance(event.part, Thinking) and not growing.has_told(event.part.text):
                path = f"choices[{choice.number}].message.parts[{growing.number}]"
                self._losses.add(path, CORRECTED)
            return b""
        shown = stateless(event.part)
        return self._write(events.PartStop(event.index, shown, choice.number))

    def _stop_late(self, choice: OpenChoice, part: AnyPart, home: Origin) -> bytes:
        """Emit the state of a part that has already ended."""
        return self._carry_state(choice, choice.count - 1, part, home, choice.sealer.place)

    def _ends(self, choice: OpenChoice) -> bytes:
        """Emit the delayed stops."""
        if not choice.ended:
            return b""
        ended, choice.ended = choice.ended, {}
        return b"".join([self._stop(choice, growing) for growing in ended.values()])

    def _stop(self, choice: OpenChoice, growing: OpenPart) -> bytes:
        """End a part: its state is now known."""
        final, whole = growing.final, growing.whole()
        written = self._stopped(choice, growing, final, whole)
        choice.sealer.follow(whole)
        return written

    def _stopped(
        self, choice: OpenChoice, growing: OpenPart, final: AnyPart | None, whole: AnyPart
    ) -> bytes:
        choice.sealer.cite((whole,))
        home = choice.sealer.home_of(whole)
        if home is not None:
            choice.sealed[growing.index] = growing
        if choice.thought is growing:
            choice.thought = None
        if growing.is_told and isinstance(whole, Thinking) and not whole.text:
            return self._stop_told(choice, growing, whole, home)
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
        written = self._write(events.PartStop(growing.index, shown, choice.number))
        if home is None or _is_same_state(growing.state, whole):
            return written
        return written + self._carry_state(choice, growing.number, whole, home, growing.place)

    def _stop_unseen(
        self, choice: OpenChoice, growing: OpenPart, whole: AnyPart, home: Origin | None
    ) -> bytes:
        """End a part that the client has not been shown so far."""
        if isinstance(whole, Thinking) and whole.is_empty:
            return b""
        if is_shown(whole) or home is None:
            growing.final = whole
            return self._begin(choice, growing, whole) + self._stop(choice, growing)
        made = choice.sealer.sealed_whole(whole, home, growing.place)
        if not made:
            started = self._shown(choice, growing, whole)
            return started + self._write(events.PartStop(growing.index, choice=choice.number))
        return b"".join([self._carry(choice, growing.number, part) for part in made])

    def _paused(self, choice: OpenChoice) -> bytes:
        """End a thought when another part begins: its seal must directly follow it.

        Chat servers don't mark the end of a thought, and in a front with an order its seal would
        otherwise come after the text.
        """
        growing, choice.thought = choice.thought, None
        if growing is None:
            return b""
        self._rest()
        growing.state = whole = growing.pause()
        return self._sealed(choice, growing, whole, choice.sealer.home_of(whole))

    def _stop_told(
        self, choice: OpenChoice, growing: OpenPart, rest: Thinking, home: Origin | None
    ) -> bytes:
        """End a thought that the client was already shown, and emit state that arrived late."""
        whole = growing.late_state(rest)
        if home is None or whole is None or _is_same_state(growing.state, whole):
            return b""
        return self._carry_state(choice, growing.number, whole, home, growing.place)

    def _stop_thought(
        self, choice: OpenChoice, growing: OpenPart, whole: Thinking, home: Origin | None
    ) -> bytes:
        index, number = growing.index, choice.number
        more = growing.unsent(whole.text)
        if more is None:
            self._losses.add(f"choices[{number}].message.parts[{growing.number}]", CORRECTED)
        written = self._write(PartDelta(index, more, choice=number)) if more else b""
        return written + self._sealed(choice, growing, whole, home)

    def _sealed(
        self, choice: OpenChoice, growing: OpenPart, whole: Thinking, home: Origin | None
    ) -> bytes:
        """Emit the seal of a thought that the client was shown, and its stop."""
        index, number, written = growing.index, choice.number, b""
        if home is not None and (envelope := choice.sealer.envelope(whole, home, growing.place)):
            seal: dict[str, Any] = {self._front.thoughts: envelope}
            written = self._write(PartDelta(index, choice=number, **seal))
        return written + self._write(events.PartStop(index, choice=number))

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        choice = self._choice(event.choice)
        written = self._interrupted(choice)
        is_new = choice.is_new(event)
        number = choice.numbered() if is_new else choice.count - 1
        if is_new or event.id:
            choice.ids[event.index] = event.id or choice.ids.get(event.index)
        known, carriers = choice.ids.get(event.index), list[AnyPart]()
        if (event.signature is not None or event.extras is not EMPTY) and known is not None:
            call = make_call(known, "", raw="", signature=event.signature, extras=event.extras)
            if choice.sealer.home_of(call) is not None:
                *carriers, shown = choice.sealer.sealed(call)
                event = event.replace(signature=shown.signature)
        written += b"".join([self._carry(choice, number, carrier) for carrier in carriers])
        if is_new:
            choice.places.append(number)
            choice.sealer.count_call()
        return written + self._write(event)

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        written = self._flushed(event.choice)
        if event.extras is not EMPTY:
            written += self._beside(self._choice(event.choice), event.extras)
        if event.message_extras is not EMPTY:
            choice = self._choice(event.choice)
            carriers, left = choice.sealer.returned(event.message_extras)
            number = max(choice.count - 1, 0)
            written += b"".join([self._carry(choice, number, carrier) for carrier in carriers])
            event = event.replace_unchecked(message_extras=left)
        return written + self._write(event)

    def _beside(self, choice: OpenChoice, extras: Mapping[str, Any]) -> bytes:
        """Emit the calls that a response reports at its end, beside its content."""
        sealer, number = choice.sealer, max(choice.count - 1, 0)
        found = () if choice.has_told_beside else sealer.beside(extras)
        choice.has_told_beside = choice.has_told_beside or bool(found)
        made = [each for part in found for each in sealer.sealed(part)]
        return b"".join([self._carry(choice, number, each) for each in made])

    def _response_end(self, event: events.ResponseEnd) -> bytes:
        flushed = b"".join([self._flushed(number) for number in self._choices])
        return flushed + self._write(event)

    def _flushed(self, number: int) -> bytes:
        """End all parts that were not stopped."""
        choice = self._choices.get(number)
        if choice is None:
            return b""
        choice.ended |= choice.parts
        choice.parts = {}
        return self._ends(choice)


def _is_same_state(one: AnyPart | None, other: AnyPart) -> bool:
    """Whether two versions of a part have the same state."""
    return one is not None and _state(one) == _state(other)


def _state(part: AnyPart) -> tuple[Any, ...]:
    data = part.data if isinstance(part, Thinking) else None
    return part.signature, data, part.item_id, part.extras
