"""One message model for every LLM provider, with lossless translation between wire formats.

The names most programs need are here. Everything else is grouped by subject: `dragoman.errors`,
`dragoman.events`, `dragoman.history`, `dragoman.agent`, `dragoman.model` (settings and further
value types), `dragoman.providers`, `dragoman.transport` (models, clients, retries),
`dragoman.wire`, `dragoman.tools` (provider-run tools) and `dragoman.testing`.

Names are imported lazily: `import dragoman` loads msgspec and no other third-party package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily
from dragoman._version import __version__

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.agent.context import RunContext
    from dragoman.agent.executor import ToolExecutor
    from dragoman.agent.limits import RunLimits
    from dragoman.agent.orchestrator import Orchestrator
    from dragoman.agent.results import Result
    from dragoman.agent.token_estimate import estimate_tokens
    from dragoman.errors import DragomanError
    from dragoman.history.chat import ChatHistory
    from dragoman.history.config import ChatHistoryConfig
    from dragoman.history.identity import SessionIdentity
    from dragoman.model.accumulate import MessageAccumulator
    from dragoman.model.collection import Messages
    from dragoman.model.conversation import ConversationHistory, Policy
    from dragoman.model.functions.tool import tool
    from dragoman.model.media import Audio, File, Image, Video
    from dragoman.model.messages import Message
    from dragoman.model.parts import (
        Opaque,
        Refusal,
        ServerToolCall,
        ServerToolResult,
        Text,
        Thinking,
    )
    from dragoman.model.portal import run_sync
    from dragoman.model.requests import Output, Request
    from dragoman.model.responses import Response
    from dragoman.model.revealing import reveal
    from dragoman.model.roles import Role
    from dragoman.model.store import MessageStore, Section
    from dragoman.model.tools import ToolCall, ToolCallDelta, ToolDefinition, ToolResult
    from dragoman.model.usage import FinishReason, Usage
    from dragoman.providers.checking import check
    from dragoman.providers.provider import Provider
    from dragoman.providers.registry import provider
    from dragoman.providers.translation import translate
    from dragoman.transport.model import Model, open_model
    from dragoman.wire.context import Context
    from dragoman.wire.detection import detect
    from dragoman.wire.dialect import dialect, dialects
    from dragoman.wire.encoded import Encoded
    from dragoman.wire.front import Front
    from dragoman.wire.losses import Loss, Repair
    from dragoman.wire.target import Target
    from dragoman.wire.violations import Violation

_HOMES = {
    "agent.agent": ("Agent",),
    "agent.context": ("RunContext",),
    "agent.executor": ("ToolExecutor",),
    "agent.limits": ("RunLimits",),
    "agent.orchestrator": ("Orchestrator",),
    "agent.results": ("Result",),
    "agent.token_estimate": ("estimate_tokens",),
    "errors": ("DragomanError",),
    "history.chat": ("ChatHistory",),
    "history.config": ("ChatHistoryConfig",),
    "history.identity": ("SessionIdentity",),
    "model.accumulate": ("MessageAccumulator",),
    "model.collection": ("Messages",),
    "model.conversation": ("ConversationHistory", "Policy"),
    "model.functions.tool": ("tool",),
    "model.media": ("Audio", "File", "Image", "Video"),
    "model.messages": ("Message",),
    "model.parts": ("Opaque", "Refusal", "ServerToolCall", "ServerToolResult", "Text", "Thinking"),
    "model.portal": ("run_sync",),
    "model.requests": ("Output", "Request"),
    "model.responses": ("Response",),
    "model.revealing": ("reveal",),
    "model.roles": ("Role",),
    "model.store": ("MessageStore", "Section"),
    "model.tools": ("ToolCall", "ToolCallDelta", "ToolDefinition", "ToolResult"),
    "model.usage": ("FinishReason", "Usage"),
    "providers.checking": ("check",),
    "providers.provider": ("Provider",),
    "providers.registry": ("provider",),
    "providers.translation": ("translate",),
    "transport.model": ("Model", "open_model"),
    "wire.context": ("Context",),
    "wire.detection": ("detect",),
    "wire.dialect": ("dialect", "dialects"),
    "wire.encoded": ("Encoded",),
    "wire.front": ("Front",),
    "wire.losses": ("Loss", "Repair"),
    "wire.target": ("Target",),
    "wire.violations": ("Violation",),
}

__all__ = [
    "Agent",
    "Audio",
    "ChatHistory",
    "ChatHistoryConfig",
    "Context",
    "ConversationHistory",
    "DragomanError",
    "Encoded",
    "File",
    "FinishReason",
    "Front",
    "Image",
    "Loss",
    "Message",
    "MessageAccumulator",
    "MessageStore",
    "Messages",
    "Model",
    "Opaque",
    "Orchestrator",
    "Output",
    "Policy",
    "Provider",
    "Refusal",
    "Repair",
    "Request",
    "Response",
    "Result",
    "Role",
    "RunContext",
    "RunLimits",
    "Section",
    "ServerToolCall",
    "ServerToolResult",
    "SessionIdentity",
    "Target",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolCallDelta",
    "ToolDefinition",
    "ToolExecutor",
    "ToolResult",
    "Usage",
    "Video",
    "Violation",
    "__version__",
    "check",
    "detect",
    "dialect",
    "dialects",
    "estimate_tokens",
    "open_model",
    "provider",
    "reveal",
    "run_sync",
    "tool",
    "translate",
]

# Names that moved to a subpackage. They still resolve here, with a DeprecationWarning.
_MOVED = {
    "agent": (
        "AgentChat", "AgentEvent", "AgentStream", "BlockingAgentStream", "Chunk", "Hooks", "Run",
        "ToolOrchestrator", "TypedOrchestrator",
    ),
    "errors": (
        "AllFailed", "AuthenticationError", "ConfigError", "Conflict", "ConnectError",
        "ContextTooLong", "ContextTooSmall", "Corrupt", "InvalidInputError", "InvalidRequest",
        "LimitExceeded", "LossError", "ModelNotFound", "NotFound", "NotRecorded", "OrderError",
        "Overloaded", "PermissionDenied", "ProviderError", "QuotaExceeded", "RateLimited",
        "Refused", "ServerError", "StoreError", "StreamInterrupted", "TimeoutError", "ToolError",
        "ToolRetry", "ToolTimeout", "TransportError", "WireError",
    ),
    "events": (
        "Event",
    ),
    "history": (
        "BlockingChatHistory",
    ),
    "model": (
        "CacheHint", "Choice", "Citation", "Content", "ContextManagement", "Embedding",
        "Embeddings", "MediaOutput", "ModelInfo", "Origin", "ProvidesMessage", "ProvidesMessages",
        "Sampling", "Sections", "ServerTool", "Service", "State", "ThinkingConfig", "TokenCount",
        "Tool", "ToolChoice", "schema_of",
    ),
    "providers": (
        "Price", "Prices", "provider_names",
    ),
    "testing": (
        "EchoModel", "ReplayTransport", "ScriptedModel",
    ),
    "transport": (
        "Client", "FallbackModel", "Limits", "LocalModel", "Retries", "Timeouts",
    ),
}  # fmt: skip

_SUBMODULES = (
    "agent", "errors", "events", "history", "model", "providers", "testing", "tools", "transport",
    "wire",
)  # fmt: skip

# Looked up here by `model.inputs` and `history.model_lookups`, which must not import wire.
_INNER = {
    "providers.context_windows": ("context_window",),
    "providers.translation": ("target_of", "translate"),
    "wire.detection": ("detect", "evidence"),
    "wire.dialect": ("Dialect", "dialect", "dialects", "is_dialect"),
    "interop.reader": ("INPUT_READER",),
}

__getattr__, __dir__ = lazily(__name__, _HOMES, inner=_INNER, moved=_MOVED, submodules=_SUBMODULES)
