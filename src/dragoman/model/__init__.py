"""The canonical model: immutable values, no I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman._lazy import lazily

if TYPE_CHECKING:
    from dragoman.model.accumulate import MessageAccumulator
    from dragoman.model.catalogue import Embeddings, ModelInfo, TokenCount
    from dragoman.model.collection import Messages, ProvidesMessages
    from dragoman.model.content_value import Content
    from dragoman.model.conversation import ConversationHistory, Policy
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

_HOMES = {
    "accumulate": ("MessageAccumulator",),
    "catalogue": ("Embeddings", "ModelInfo", "TokenCount"),
    "collection": ("Messages", "ProvidesMessages"),
    "content_value": ("Content",),
    "conversation": ("ConversationHistory", "Policy"),
    "functions.tool": ("Tool", "tool"),
    "media": ("Audio", "File", "Image", "Video"),
    "messages": ("Message", "ProvidesMessage"),
    "parts": (
        "CacheHint",
        "Citation",
        "Opaque",
        "Origin",
        "Refusal",
        "ServerToolCall",
        "ServerToolResult",
        "Text",
        "Thinking",
    ),
    "requests": (
        "ContextManagement",
        "MediaOutput",
        "Output",
        "Request",
        "Sampling",
        "Service",
        "State",
        "ThinkingConfig",
    ),
    "responses": ("Choice", "Embedding", "Response"),
    "roles": ("Role",),
    "schema": ("schema_of",),
    "store": ("MessageStore", "Section", "Sections"),
    "tools": (
        "ServerTool",
        "ToolCall",
        "ToolCallDelta",
        "ToolChoice",
        "ToolDefinition",
        "ToolResult",
    ),
    "usage": ("FinishReason", "Usage"),
}

__all__ = [
    "Audio",
    "CacheHint",
    "Choice",
    "Citation",
    "Content",
    "ContextManagement",
    "ConversationHistory",
    "Embedding",
    "Embeddings",
    "File",
    "FinishReason",
    "Image",
    "MediaOutput",
    "Message",
    "MessageAccumulator",
    "MessageStore",
    "Messages",
    "ModelInfo",
    "Opaque",
    "Origin",
    "Output",
    "Policy",
    "ProvidesMessage",
    "ProvidesMessages",
    "Refusal",
    "Request",
    "Response",
    "Role",
    "Sampling",
    "Section",
    "Sections",
    "ServerTool",
    "ServerToolCall",
    "ServerToolResult",
    "Service",
    "State",
    "Text",
    "Thinking",
    "ThinkingConfig",
    "TokenCount",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "Usage",
    "Video",
    "schema_of",
    "tool",
]

__getattr__, __dir__ = lazily(__name__, _HOMES)
