"""One form for the texts of a stream, so that middleware need not know the wires' habits.

Providers tell a text in deltas, with its start, or once more as a whole when it is complete (W26).
Middleware gets each text in deltas alone; what providers repeat is made to say what middleware let
through.
"""

from __future__ import annotations

from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop, ResponseStart
from dragoman.model.parts import Refusal, Text, Thinking

_TEXTS = (Text, Thinking, Refusal)
_Place = tuple[int, int]


class Texts:
    """The texts of one answer: as the model said them, and as the client hears them."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._came: dict[_Place, list[str]] = {}
        self._went: dict[_Place, list[str]] = {}
        self._final: dict[_Place, AnyPart] = {}
        """What the provider repeats of a part that is complete."""

    def told(self, event: Event) -> list[Event]:
        """An event as middleware gets it."""
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
        if place not in self._came:  # all of it comes at the end
            before = self._started(event.index, event.choice, part, None)
        self._final[place] = part
        return [*before, PartStop(event.index, choice=event.choice)]

    def heard(self, event: Event) -> Event:
        """An event of middleware's as the client gets it."""
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
