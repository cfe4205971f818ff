"""Events of an agent's run.

Iterate over them with `agent.stream(...).events()`; chunks are made from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from dragoman.agent.emitting import Emittable
from dragoman.agent.reprs import Shown
from dragoman.model.messages import Message
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolResult

if TYPE_CHECKING:
    from dragoman.agent.results import Result


@dataclass(frozen=True, slots=True, repr=False)
class StepStarted(Shown, Emittable):
    """A request to the model is about to be sent, the first or one after tools."""

    step: int

    def _sizes(self) -> Iterator[str]:
        yield str(self.step)


@dataclass(frozen=True, slots=True, repr=False)
class TextDelta(Shown, Emittable):
    """More text of the answer."""

    text: str

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


@dataclass(frozen=True, slots=True, repr=False)
class ThinkingDelta(Shown, Emittable):
    """More thinking of the model."""

    text: str

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.text)} chars"


@dataclass(frozen=True, slots=True, repr=False)
class PartialOutput(Shown, Emittable):
    """The typed output so far."""

    value: Any
    """A value of the requested type; unset until what was received is valid, and if that value is
    the same as before."""
    json: Any = UNSET
    """What was received, as plain JSON values, not validated."""


@dataclass(frozen=True, slots=True, repr=False)
class ResponseReceived(Shown, Emittable):
    """The model's complete response to one request."""

    response: Response

    def _sizes(self) -> Iterator[str]:
        yield repr(self.response)


@dataclass(frozen=True, slots=True, repr=False)
class ToolStarted(Shown, Emittable):
    """A tool starts."""

    call: ToolCall

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)


@dataclass(frozen=True, slots=True, repr=False)
class ToolFinished(Shown, Emittable):
    """A tool has ended, successfully or not; or was not run, and the result says why."""

    call: ToolCall
    result: ToolResult
    seconds: float = 0.0

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)
        yield repr(self.result)
        yield f"{self.seconds:.3f} s"


@dataclass(frozen=True, slots=True, repr=False)
class MessageAdded(Shown, Emittable):
    """A message was added to the conversation; durably, if the history is stored."""

    message: Message

    def _sizes(self) -> Iterator[str]:
        yield repr(self.message)


@dataclass(frozen=True, slots=True, repr=False)
class RetryRequested(Shown, Emittable):
    """The answer was unusable: discard what was streamed of it; the request is repeated."""

    reason: str

    def _sizes(self) -> Iterator[str]:
        yield self.reason


@dataclass(frozen=True, slots=True, repr=False)
class HandedOff(Shown, Emittable):
    """Another agent continues the conversation."""

    name: str

    def _sizes(self) -> Iterator[str]:
        yield self.name


@dataclass(frozen=True, slots=True, repr=False)
class RunFinished(Shown, Emittable):
    """The run has ended."""

    result: Result[Any]

    def _sizes(self) -> Iterator[str]:
        yield repr(self.result)


@dataclass(frozen=True, slots=True, repr=False)
class SubAgentEvent(Shown, Emittable):
    """An event of an agent called by a tool: one made with `as_tool`, or called with `within=`."""

    call: ToolCall
    """The call in the outer run that the tool answers."""
    event: AgentEvent
    """The inner event; a `SubAgentEvent` again, if that agent's tool calls another agent."""

    def _sizes(self) -> Iterator[str]:
        yield repr(self.call)
        yield repr(self.event)


AgentEvent = (
    StepStarted
    | TextDelta
    | ThinkingDelta
    | PartialOutput
    | ResponseReceived
    | ToolStarted
    | ToolFinished
    | MessageAdded
    | RetryRequested
    | HandedOff
    | RunFinished
    | SubAgentEvent
)
"""Any event of a run."""
