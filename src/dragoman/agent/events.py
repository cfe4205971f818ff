"""What happens while an agent works, one event at a time.

`agent.stream(...).events()` goes through them; chunks are made of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dragoman.agent.emitting import Emittable
from dragoman.agent.reprs import Shown
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.agent.results import Result


@dataclass(frozen=True, slots=True, repr=False)
class StepStarted(Shown, Emittable):
    """The model is about to be asked, for the first time or again after tools."""

    step: int

    def _sizes(self) -> Iterator[str]:
        yield str(self.step)


@dataclass(frozen=True, slots=True, repr=False)
class TextDelta(Shown, Emittable):
    """More of the answer's text."""

    text: str

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


@dataclass(frozen=True, slots=True, repr=False)
class ThinkingDelta(Shown, Emittable):
    """More of what the model thinks."""

    text: str

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


@dataclass(frozen=True, slots=True, repr=False)
class PartialOutput(Shown, Emittable):
    """The typed output as far as it has come: plain JSON values, not yet checked."""

    value: Any


@dataclass(frozen=True, slots=True, repr=False)
class Answered(Shown, Emittable):
    """The model's whole answer to one request."""

    response: Response

    def _sizes(self) -> Iterator[str]:
        yield repr(self.response)


@dataclass(frozen=True, slots=True, repr=False)
class ToolStarted(Shown, Emittable):
    """A tool begins to run."""

    call: ToolCall

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)


@dataclass(frozen=True, slots=True, repr=False)
class ToolFinished(Shown, Emittable):
    """A tool has ended, well or not; or was not run at all, and the result says why."""

    call: ToolCall
    result: ToolResult
    seconds: float = 0.0

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)
        yield repr(self.result)
        yield f"{self.seconds:.3f} s"


@dataclass(frozen=True, slots=True, repr=False)
class MessageAdded(Shown, Emittable):
    """The conversation has grown by a message; where it is kept, it is durable now."""

    message: Message

    def _sizes(self) -> Iterator[str]:
        yield repr(self.message)


@dataclass(frozen=True, slots=True, repr=False)
class AskedAgain(Shown, Emittable):
    """The answer was no use: what was told of it is void, and the model, or another, is asked."""

    reason: str

    def _sizes(self) -> Iterator[str]:
        yield self.reason


@dataclass(frozen=True, slots=True, repr=False)
class HandedOver(Shown, Emittable):
    """Another agent goes on with the conversation."""

    name: str

    def _sizes(self) -> Iterator[str]:
        yield self.name


@dataclass(frozen=True, slots=True, repr=False)
class RunFinished(Shown, Emittable):
    """The run is over."""

    result: Result[Any]

    def _sizes(self) -> Iterator[str]:
        yield repr(self.result)


@dataclass(frozen=True, slots=True, repr=False)
class SubAgentEvent(Shown, Emittable):
    """Something happens in an agent that a tool asks: one made by `as_tool`, or with `within=`."""

    call: ToolCall
    """The call, of the run that is followed, which the tool answers."""
    event: AgentEvent
    """What happens there; again a `SubAgentEvent`, where that agent's tool asks another one."""

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)
        yield repr(self.event)


AgentEvent = (
    StepStarted
    | TextDelta
    | ThinkingDelta
    | PartialOutput
    | Answered
    | ToolStarted
    | ToolFinished
    | MessageAdded
    | AskedAgain
    | HandedOver
    | RunFinished
    | SubAgentEvent
)
"""All that can happen."""
