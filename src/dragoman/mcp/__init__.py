"""Model Context Protocol: servers whose tools an agent can use. Extra: `dragoman[mcp]`.

Names are imported on first use.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from dragoman._lazy import lazily
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.mcp.config import mcp_servers
    from dragoman.mcp.questions import Question, Sampling
    from dragoman.mcp.server import MCPServer, ServerOptions
    from dragoman.mcp.tools import MCPTool
    from dragoman.mcp.values import (
        LogMessage,
        Progress,
        Prompt,
        PromptArgument,
        Resource,
        ResourceTemplate,
        ServerInfo,
    )

_HOMES = {
    "config": ("mcp_servers",),
    "questions": ("Question", "Sampling"),
    "server": ("MCPServer", "ServerOptions"),
    "tools": ("MCPTool",),
    "values": (
        "LogMessage",
        "Progress",
        "Prompt",
        "PromptArgument",
        "Resource",
        "ResourceTemplate",
        "ServerInfo",
    ),
}

__all__ = [
    "LogMessage",
    "MCPServer",
    "MCPTool",
    "Progress",
    "Prompt",
    "PromptArgument",
    "Question",
    "Resource",
    "ResourceTemplate",
    "Sampling",
    "ServerInfo",
    "ServerOptions",
    "mcp_servers",
]


def _expect_extra() -> None:
    if find_spec("mcp") is None:
        msg = "dragoman.mcp needs the mcp extra: pip install 'dragoman[mcp]'"
        raise ConfigError(msg)


_expect_extra()
__getattr__, __dir__ = lazily(__name__, _HOMES)
