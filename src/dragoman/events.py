"""What happens while an answer comes in, and while an agent works.

`Event` is one event of a streamed answer, the same for every provider (`async for event in
model.stream(request)`); `AgentEvent` is one step of an agent (`agent.stream(...).events()`).
"""

from __future__ import annotations

from dragoman.agent.events import (
    AgentEvent,
    Answered,
    AskedAgain,
    HandedOver,
    MessageAdded,
    PartialOutput,
    RunFinished,
    StepStarted,
    SubAgentEvent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolStarted,
)
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

__all__ = [
    "AgentEvent",
    "Answered",
    "AskedAgain",
    "ChoiceFinish",
    "Event",
    "HandedOver",
    "MessageAdded",
    "OpaqueEvent",
    "PartDelta",
    "PartStart",
    "PartStop",
    "PartialOutput",
    "ResponseEnd",
    "ResponseStart",
    "RunFinished",
    "StepStarted",
    "StreamError",
    "SubAgentEvent",
    "TextDelta",
    "ThinkingDelta",
    "ToolFinished",
    "ToolStarted",
    "UsageUpdate",
]
