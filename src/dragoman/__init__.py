"""Dragoman: a conversation with language models belongs to its owner, not to a provider.

Names are resolved when first used: `import dragoman` loads msgspec and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily
from dragoman._version import __version__

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.chat import AgentChat
    from dragoman.agent.context import RunContext
    from dragoman.agent.events import AgentEvent
    from dragoman.agent.executor import ToolExecutor
    from dragoman.agent.hooks import Hooks
    from dragoman.agent.limits import RunLimits
    from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator
    from dragoman.agent.results import Chunk, Result
    from dragoman.agent.runs import Run
    from dragoman.agent.stream import AgentStream, BlockingAgentStream
    from dragoman.agent.typed import TypedOrchestrator
    from dragoman.errors import (
        AllFailed,
        AuthenticationError,
        ConfigError,
        Conflict,
        ConnectError,
        ContextTooLong,
        ContextTooSmall,
        Corrupt,
        DragomanError,
        InvalidInputError,
        InvalidRequest,
        LimitExceeded,
        LossError,
        ModelNotFound,
        NotFound,
        NotRecorded,
        OrderError,
        Overloaded,
        PermissionDenied,
        ProviderError,
        QuotaExceeded,
        RateLimited,
        Refused,
        ServerError,
        StoreError,
        StreamInterrupted,
        TimeoutError,  # noqa: A004 - the natural name; users write dragoman.TimeoutError
        ToolError,
        ToolRetry,
        ToolTimeout,
        TransportError,
        WireError,
    )
    from dragoman.history.blocking import BlockingChatHistory
    from dragoman.history.chat import ChatHistory
    from dragoman.history.config import ChatHistoryConfig
    from dragoman.history.identity import SessionIdentity
    from dragoman.model.accumulate import MessageAccumulator
    from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
    from dragoman.model.collection import Messages, ProvidesMessages
    from dragoman.model.content_value import Content
    from dragoman.model.conversation import ConversationHistory, Policy
    from dragoman.model.events import Event
    from dragoman.model.functions.tool import Tool, tool
    from dragoman.model.media import Audio, File, Image, Video
    from dragoman.model.messages import Message, ProvidesMessage
    from dragoman.model.parts import (
        CacheHint,
        Citation,
        Opaque,
        Origin,
        Refusal,
        ServerToolCall,
        ServerToolResult,
        Text,
        Thinking,
    )
    from dragoman.model.requests import (
        ContextManagement,
        MediaOutput,
        Output,
        Request,
        Sampling,
        Service,
        State,
        ThinkingConfig,
    )
    from dragoman.model.responses import Choice, Embedding, Response
    from dragoman.model.roles import Role
    from dragoman.model.schema import schema_of
    from dragoman.model.store import MessageStore, Section, Sections
    from dragoman.model.tools import (
        ServerTool,
        ToolCall,
        ToolCallDelta,
        ToolChoice,
        ToolDefinition,
        ToolResult,
    )
    from dragoman.model.usage import FinishReason, Usage
    from dragoman.providers.price import Price
    from dragoman.providers.prices import Prices
    from dragoman.providers.provider import Provider
    from dragoman.providers.registry import provider, provider_names
    from dragoman.providers.translation import translate
    from dragoman.providers.windows import context_window
    from dragoman.transport.client import Client
    from dragoman.transport.echo import EchoModel
    from dragoman.transport.fallback import FallbackModel
    from dragoman.transport.gates import Limits
    from dragoman.transport.local.model import LocalModel
    from dragoman.transport.model import Model, open_model
    from dragoman.transport.protocol import Timeouts
    from dragoman.transport.replay import ReplayTransport
    from dragoman.transport.retries import Retries
    from dragoman.transport.scripted import ScriptedModel
    from dragoman.wire.detection import detect
    from dragoman.wire.dialect import Dialect, dialect, dialects
    from dragoman.wire.encoded import Encoded
    from dragoman.wire.front import Front
    from dragoman.wire.losses import Loss, Repair
    from dragoman.wire.target import Target
    from dragoman.wire.violations import Violation

_HOMES = {
    "agent.agent": ("Agent",),
    "agent.chat": ("AgentChat",),
    "agent.context": ("RunContext",),
    "agent.events": ("AgentEvent",),
    "agent.executor": ("ToolExecutor",),
    "agent.hooks": ("Hooks",),
    "agent.limits": ("RunLimits",),
    "agent.orchestrator": ("Orchestrator", "ToolOrchestrator"),
    "agent.results": ("Chunk", "Result"),
    "agent.runs": ("Run",),
    "agent.stream": ("AgentStream", "BlockingAgentStream"),
    "agent.typed": ("TypedOrchestrator",),
    "errors": (
        "AllFailed", "AuthenticationError", "ConfigError", "Conflict", "ConnectError",
        "ContextTooLong",
        "ContextTooSmall", "Corrupt", "DragomanError", "InvalidInputError", "InvalidRequest",
        "LimitExceeded", "LossError", "ModelNotFound", "NotFound", "NotRecorded", "OrderError",
        "Overloaded",
        "PermissionDenied", "ProviderError", "QuotaExceeded", "RateLimited", "Refused",
        "ServerError", "StoreError", "StreamInterrupted", "TimeoutError", "ToolError", "ToolRetry",
        "ToolTimeout", "TransportError", "WireError",
    ),
    "history.blocking": ("BlockingChatHistory",),
    "history.chat": ("ChatHistory",),
    "history.config": ("ChatHistoryConfig",),
    "history.identity": ("SessionIdentity",),
    "model.accumulate": ("MessageAccumulator",),
    "model.catalogue": ("Embeddings", "ModelInfo", "TokenCount"),
    "model.collection": ("Messages", "ProvidesMessages"),
    "model.content_value": ("Content",),
    "model.conversation": ("ConversationHistory", "Policy"),
    "model.events": ("Event",),
    "model.functions.tool": ("Tool", "tool"),
    "model.media": ("Audio", "File", "Image", "Video"),
    "model.messages": ("Message", "ProvidesMessage"),
    "model.parts": (
        "CacheHint", "Citation", "Opaque", "Origin", "Refusal", "ServerToolCall",
        "ServerToolResult", "Text", "Thinking",
    ),
    "model.requests": (
        "ContextManagement", "MediaOutput", "Output", "Request", "Sampling", "Service", "State",
        "ThinkingConfig",
    ),
    "model.responses": ("Choice", "Embedding", "Response"),
    "model.roles": ("Role",),
    "model.schema": ("schema_of",),
    "model.store": ("MessageStore", "Section", "Sections"),
    "model.tools": (
        "ServerTool", "ToolCall", "ToolCallDelta", "ToolChoice", "ToolDefinition", "ToolResult",
    ),
    "model.usage": ("FinishReason", "Usage"),
    "providers.price": ("Price",),
    "providers.prices": ("Prices",),
    "providers.provider": ("Provider",),
    "providers.registry": ("provider", "provider_names"),
    "providers.translation": ("translate",),
    "providers.windows": ("context_window",),
    "transport.client": ("Client",),
    "transport.echo": ("EchoModel",),
    "transport.fallback": ("FallbackModel",),
    "transport.gates": ("Limits",),
    "transport.local.model": ("LocalModel",),
    "transport.model": ("Model", "open_model"),
    "transport.protocol": ("Timeouts",),
    "transport.replay": ("ReplayTransport",),
    "transport.retries": ("Retries",),
    "transport.scripted": ("ScriptedModel",),
    "wire.dialect": ("Dialect", "dialect", "dialects"),
    "wire.encoded": ("Encoded",),
    "wire.front": ("Front",),
    "wire.losses": ("Loss", "Repair"),
    "wire.target": ("Target",),
    "wire.detection": ("detect",),
    "wire.violations": ("Violation",),
}  # fmt: skip

__all__ = [
    "Agent",
    "AgentChat",
    "AgentEvent",
    "AgentStream",
    "AllFailed",
    "Audio",
    "AuthenticationError",
    "BlockingAgentStream",
    "BlockingChatHistory",
    "CacheHint",
    "ChatHistory",
    "ChatHistoryConfig",
    "Choice",
    "Chunk",
    "Citation",
    "Client",
    "ConfigError",
    "Conflict",
    "ConnectError",
    "Content",
    "ContextManagement",
    "ContextTooLong",
    "ContextTooSmall",
    "ConversationHistory",
    "Corrupt",
    "Dialect",
    "DragomanError",
    "EchoModel",
    "Embedding",
    "Embeddings",
    "Encoded",
    "Event",
    "FallbackModel",
    "File",
    "FinishReason",
    "Front",
    "Hooks",
    "Image",
    "InvalidInputError",
    "InvalidRequest",
    "LimitExceeded",
    "Limits",
    "LocalModel",
    "Loss",
    "LossError",
    "MediaOutput",
    "Message",
    "MessageAccumulator",
    "MessageStore",
    "Messages",
    "Model",
    "ModelInfo",
    "ModelNotFound",
    "NotFound",
    "NotRecorded",
    "Opaque",
    "Orchestrator",
    "OrderError",
    "Origin",
    "Output",
    "Overloaded",
    "PermissionDenied",
    "Policy",
    "Price",
    "Prices",
    "Provider",
    "ProviderError",
    "ProvidesMessage",
    "ProvidesMessages",
    "QuotaExceeded",
    "RateLimited",
    "Refusal",
    "Refused",
    "Repair",
    "ReplayTransport",
    "Request",
    "Response",
    "Result",
    "Retries",
    "Role",
    "Run",
    "RunContext",
    "RunLimits",
    "Sampling",
    "ScriptedModel",
    "Section",
    "Sections",
    "ServerError",
    "ServerTool",
    "ServerToolCall",
    "ServerToolResult",
    "Service",
    "SessionIdentity",
    "State",
    "StoreError",
    "StreamInterrupted",
    "Target",
    "Text",
    "Thinking",
    "ThinkingConfig",
    "TimeoutError",
    "Timeouts",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolChoice",
    "ToolDefinition",
    "ToolError",
    "ToolExecutor",
    "ToolOrchestrator",
    "ToolResult",
    "ToolRetry",
    "ToolTimeout",
    "TransportError",
    "TypedOrchestrator",
    "Usage",
    "Video",
    "Violation",
    "WireError",
    "__version__",
    "context_window",
    "detect",
    "dialect",
    "dialects",
    "open_model",
    "provider",
    "provider_names",
    "schema_of",
    "tool",
    "translate",
]

# What `model.inputs` and `history.outside` look up here: they import nothing of the wire.
_INNER = {"wire.inputs.reader": ("INPUT_READER",), "wire.detection": ("detect", "evidence")}

__getattr__, __dir__ = lazily(__name__, {**_HOMES, **_INNER})
