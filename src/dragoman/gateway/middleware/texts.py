"""Normalises the texts of a stream for middleware.

Providers send a text in deltas, with its start event, or again as a whole when it is complete
(W26). Middleware gets every text as deltas only; texts that a provider repeats are replaced by what
middleware let through.
"""

from __future__ import annotations

from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop, ResponseStart
from dragoman.model.parts import Refusal, Text, Thinking

_TEXTS = (Text, Thinking, Refusal)
_Place = tuple[int, int]


class Texts:
    """The texts of one response: as received from the model, and as sent to the client."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._came: dict[_Place, list[str]] = {}
        self._went: dict[_Place, list[str]] = {}
        self._final: dict[_Place, AnyPart] = {}
        """The complete parts that the provider repeated."""

    def received(self, event: Event) -> list[Event]:
        """Convert a model's event to those that middleware gets."""
        if isinstance(event, ResponseStart) and event.restarts:
            self._begin()
        elif isinstance(event, PartStart) and isinstance(event.part, _TEXTS):
            return self._started(event.index, event.choice, event.part, event)
        elif isinstance(event, PartDelta) and event.text:
            self._came.setdefault((event.choice, event.index), []).append(event.text)
        elif isinstance(event, PartStop) and isinstance(event.part, _TEXTS):
            return self._stopped(event, event.part)
        return [event]

    def _started(
        self, index: int, choice: int, part: Text | Thinking | Refusal, event: PartStart | None
    ) -> list[Event]:
        self._came[choice, index] = [part.text]
        if not part.text and event is not None:
            return [event]
        bare: AnyPart = part.replace_unchecked(text="")
        return [PartStart(index, bare, choice), PartDelta(index, part.text, choice=choice)]

    def _stopped(self, event: PartStop, part: Text | Thinking | Refusal) -> list[Event]:
        place = (event.choice, event.index)
        before: list[Event] = []
        if place not in self._came:  # the whole text came with the stop event
            before = self._started(event.index, event.choice, part, None)
        self._final[place] = part
        return [*before, PartStop(event.index, choice=event.choice)]

    def sent(self, event: Event) -> Event:
        """Convert an event from middleware to the one that the client gets."""
        if isinstance(event, PartStart) and isinstance(event.part, _TEXTS):
            self._went[event.choice, event.index] = [event.part.text]
        elif isinstance(event, PartDelta) and event.text:
            self._went.setdefault((event.choice, event.index), []).append(event.text)
        elif isinstance(event, PartStop) and event.part is None:
            return self._completed(event)
        return event

    def _completed(self, event: PartStop) -> PartStop:
        place = (event.choice, event.index)
        final = self._final.pop(place, None)
        if final is None:
            return event
        came, went = "".join(self._came.get(place, ())), "".join(self._went.get(place, ()))
        if isinstance(final, _TEXTS) and not came == went == final.text:
            final = final.replace_unchecked(text=went)
        return PartStop(event.index, final, event.choice)
