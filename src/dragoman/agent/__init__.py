"""The agent: conversations with tools, typed results and streaming, on any model.

Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.chat import AgentChat
    from dragoman.agent.context import RunContext
    from dragoman.agent.conversations import Conversation
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
    from dragoman.agent.executor import ToolExecutor
    from dragoman.agent.handoffs import Handoff
    from dragoman.agent.hooks import Hooks
    from dragoman.agent.limits import RunLimits
    from dragoman.agent.options import CallOptions, Settings
    from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator
    from dragoman.agent.results import Chunk, Result
    from dragoman.agent.runs import Run
    from dragoman.agent.stream import AgentStream, BlockingAgentStream
    from dragoman.agent.toolsets import Toolset
    from dragoman.agent.typed_run import TypedOrchestrator

_HOMES = {
    "agent": ("Agent",),
    "chat": ("AgentChat",),
    "context": ("RunContext",),
    "conversations": ("Conversation",),
    "events": (
        "AgentEvent",
        "ResponseReceived",
        "RetryRequested",
        "HandedOff",
        "MessageAdded",
        "PartialOutput",
        "RunFinished",
        "StepStarted",
        "SubAgentEvent",
        "TextDelta",
        "ThinkingDelta",
        "ToolFinished",
        "ToolStarted",
    ),
    "executor": ("ToolExecutor",),
    "handoffs": ("Handoff",),
    "hooks": ("Hooks",),
    "limits": ("RunLimits",),
    "options": ("CallOptions", "Settings"),
    "orchestrator": ("Orchestrator", "ToolOrchestrator"),
    "results": ("Chunk", "Result"),
    "runs": ("Run",),
    "stream": ("AgentStream", "BlockingAgentStream"),
    "toolsets": ("Toolset",),
    "typed_run": ("TypedOrchestrator",),
}

__all__ = [
    "Agent",
    "AgentChat",
    "AgentEvent",
    "AgentStream",
    "BlockingAgentStream",
    "CallOptions",
    "Chunk",
    "Conversation",
    "HandedOff",
    "Handoff",
    "Hooks",
    "MessageAdded",
    "Orchestrator",
    "PartialOutput",
    "ResponseReceived",
    "Result",
    "RetryRequested",
    "Run",
    "RunContext",
    "RunFinished",
    "RunLimits",
    "Settings",
    "StepStarted",
    "SubAgentEvent",
    "TextDelta",
    "ThinkingDelta",
    "ToolExecutor",
    "ToolFinished",
    "ToolOrchestrator",
    "ToolStarted",
    "Toolset",
    "TypedOrchestrator",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
