"""Streams for clients that accept tool calls only in one piece.

Mistral streams them that way, and its SDK rejects OpenAI's format, in which chunks after the first
have no name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from dragoman.model.events import ChoiceFinish, Event, PartDelta, PartStart, PartStop
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.wire.front import AgentForm, FrontForm

_NOTHING = "{}"
"""The arguments of a call that has none: if missing, they would be sent in a separate chunk."""


def agent_form(form: FrontForm, user_agent: bytes) -> AgentForm | None:
    """The special needs of a client, by its user agent; None: it has none."""
    for name, found in form.agents.items():
        if name in user_agent:
            return found
    return None


class Answering(Protocol):
    """A response in progress."""

    @property
    def response(self) -> Response:
        """The part received so far."""
        ...


class WholeCalls:
    """Holds tool calls back until the model has finished, then emits each in one piece."""

    def __init__(self, source: Answering) -> None:
        self._source = source
        self._held: set[tuple[int, int]] = set()

    def feed(self, events: Iterable[Event]) -> list[Event]:
        """Return the events to send, without partial tool calls."""
        return list(self._kept(events))

    def _kept(self, events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if self._is_piece(event):
                continue
            if isinstance(event, ChoiceFinish):
                yield from self._calls(event.choice)
            yield event

    def _is_piece(self, event: Event) -> bool:
        if isinstance(event, PartStart) and isinstance(event.part, ToolCall):
            self._held.add((event.choice, event.index))
        if isinstance(event, (PartStart, PartDelta, PartStop)):
            return (event.choice, event.index) in self._held
        return isinstance(event, ToolCallDelta)

    def _calls(self, choice: int) -> Iterator[Event]:
        for found in self._source.response.choices:
            if found.index == choice:
                for index, part in enumerate(found.message.parts):
                    if isinstance(part, ToolCall):
                        whole = part if part.raw or part.arguments else part.replace(raw=_NOTHING)
                        yield PartStart(index, whole, choice)
                        yield PartStop(index, choice=choice)
