"""Where things stood before a request was fitted: losses point into the request as it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from dragoman.model.messages import Message
from dragoman.wire.losses import Loss

_PATH = re.compile(r"messages\[(\d+)\](?:\.parts\[(\d+)\])?")
Messages = tuple[Message, ...]
T = TypeVar("T")


class Places:
    """The places of messages and parts in the given messages, by what stands at them.

    Fitting moves parts and leaves some out, but those that it keeps are the same objects. One
    object may stand at several places: they are given out in their order.
    """

    def __init__(self, given: Messages, fitted: Messages) -> None:
        known: dict[int, list[tuple[int, int]]] = {}
        for index, message in enumerate(given):
            for place, part in enumerate(message.parts):
                known.setdefault(id(part), []).append((index, place))
        whole = _places_of(given)
        self._messages: list[int | None] = []
        self._parts: list[list[tuple[int, int] | None]] = []
        for message in fitted:
            found = [_next(known.get(id(part))) for part in message.parts]
            first = next((place[0] for place in found if place is not None), None)
            same = _next(whole.get(id(message)))
            self._messages.append(same if same is not None else first)
            self._parts.append(found)

    def restored(self, loss: Loss) -> Loss:
        """The loss at the place that it had; as it is, where there was none."""
        found = _PATH.match(loss.path)
        if found is None or int(found[1]) >= len(self._messages):
            return loss
        index, rest = int(found[1]), loss.path[found.end() :]
        if found[2] is None:
            place = self._messages[index]
            return loss if place is None else loss.replace(path=f"messages[{place}]{rest}")
        parts = self._parts[index]
        part = parts[int(found[2])] if int(found[2]) < len(parts) else None
        if part is None:
            return loss
        return loss.replace(path=f"messages[{part[0]}].parts[{part[1]}]{rest}")


def restored(losses: Iterable[Loss], given: Messages, fitted: Messages) -> tuple[Loss, ...]:
    """Losses that point into the fitted messages, pointing into the given ones."""
    found = tuple(losses)
    if fitted is given or not found:
        return found
    return tuple(map(Places(given, fitted).restored, found))


def _places_of(messages: Messages) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for index, message in enumerate(messages):
        places.setdefault(id(message), []).append(index)
    return places


def _next(places: list[T] | None) -> T | None:
    return places.pop(0) if places else None
