"""Events of a streamed response and of an agent run.

`Event` is one event of a streamed response, the same for every provider (`async for event in
model.stream(request)`). `AgentEvent` is one event of an agent run (`agent.stream(...).events()`).
"""

from __future__ import annotations

from dragoman.agent.events import (
    AgentEvent,
    HandedOff,
    MessageAdded,
    PartialOutput,
    ResponseReceived,
    RetryRequested,
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
    "ChoiceFinish",
    "Event",
    "HandedOff",
    "MessageAdded",
    "OpaqueEvent",
    "PartDelta",
    "PartStart",
    "PartStop",
    "PartialOutput",
    "ResponseEnd",
    "ResponseReceived",
    "ResponseStart",
    "RetryRequested",
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
