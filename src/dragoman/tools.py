"""Tools that run on the provider's side: `Agent("anthropic:…", tools=[WebSearch()])`."""

from __future__ import annotations

from dragoman.model.provider_tools import (
    ApplyPatch,
    CodeExecution,
    ComputerUse,
    FileSearch,
    ImageGeneration,
    KnownTool,
    Location,
    McpServer,
    Memory,
    ProviderTool,
    Shell,
    TextEditor,
    ToolSearch,
    WebFetch,
    WebSearch,
)

__all__ = [
    "ApplyPatch",
    "CodeExecution",
    "ComputerUse",
    "FileSearch",
    "ImageGeneration",
    "KnownTool",
    "Location",
    "McpServer",
    "Memory",
    "ProviderTool",
    "Shell",
    "TextEditor",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
]
