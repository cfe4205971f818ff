"""Recent failures by provider and model, which are tried last for a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dragoman.gateway.config.settings import Hop

_FIRST_COOLDOWN, _MAX_COOLDOWN = 5.0, 300.0  # seconds that a failed hop is tried last
_DOUBLINGS = 10  # more would exceed the maximum anyway
_REMEMBERED = 600.0  # seconds after which an earlier failure no longer counts
_MAX_TRACKED = 1024  # bounded, because clients choose the names of models

Key = tuple[str, str | None]
"""The name of a place, and a model there; None: all its models."""


class Failing(NamedTuple):
    """The recent failures of a place or model."""

    times: int
    until: float
    error: str | None = None
    """The type of the last error."""


class Health:
    """Recent failures by place and model, shared by all routes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._failing: dict[Key, Failing] = {}

    def __bool__(self) -> bool:
        """Whether there are any recent failures."""
        return bool(self._failing)

    def note_failure(
        self, hop: Hop, retry_after: float | None = None, *, is_whole_place: bool = False,
        error: str | None = None,
    ) -> None:  # fmt: skip
        """Try a hop, or its whole place, last for a while: longer after each further failure."""
        now, key = self._clock(), (hop.place.name, None if is_whole_place else hop.model)
        known = self._failing.pop(key, None)
        if known is None or now - known.until > _REMEMBERED:
            known = Failing(0, 0.0)
        # Concurrent requests that fail count as one failure.
        times = known.times if now < known.until else known.times + 1
        wait = min(_FIRST_COOLDOWN * 2 ** min(times - 1, _DOUBLINGS), _MAX_COOLDOWN)
        requested = min(max(retry_after or 0.0, 0.0), _MAX_COOLDOWN)
        until = known.until if now < known.until else now + wait
        self._make_room(now)
        self._failing[key] = Failing(times, max(until, now + requested), error)

    def note_success(self, hop: Hop) -> None:
        """Forget the failures of a hop that responded."""
        if self._failing:
            self._failing.pop((hop.place.name, hop.model), None)
            self._failing.pop((hop.place.name, None), None)

    def penalty(self, hop: Hop) -> float:
        """Seconds for which the hop is still tried last; 0.0: it is healthy."""
        keys = ((hop.place.name, hop.model), (hop.place.name, None))
        known = [each.until for key in keys if (each := self._failing.get(key)) is not None]
        return max(max(known) - self._clock(), 0.0) if known else 0.0

    def failing(self, hop: Hop) -> Failing | None:
        """The recent failures of a hop, including those of its place; None: it is healthy."""
        if hop.model is None:  # any model that a client requests there
            keys = [key for key in self._failing if key[0] == hop.place.name]
        else:
            keys = [(hop.place.name, hop.model), (hop.place.name, None)]
        known = [each for key in keys if (each := self._failing.get(key)) is not None]
        return max(known, key=lambda each: each.until) if known else None

    def rest(self, known: Failing) -> float:
        """Seconds for which a failed hop is still tried last."""
        return max(known.until - self._clock(), 0.0)

    def _make_room(self, now: float) -> None:
        if len(self._failing) < _MAX_TRACKED:
            return
        for key in [key for key, each in self._failing.items() if each.until <= now]:
            del self._failing[key]
        while len(self._failing) >= _MAX_TRACKED:
            del self._failing[next(iter(self._failing))]
