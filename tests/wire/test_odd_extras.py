"""Malformed extras, as stored documents and callers may contain them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Message, Request, ToolDefinition, dialect, dialects
from dragoman.model import ServerTool, Service
from dragoman.tools import CodeExecution, McpServer, WebSearch

_TOOLS: Any = (
    WebSearch(), CodeExecution(container="c"), McpServer(label="d", url="u"),
    ServerTool("mcp_toolset", "anthropic", {"mcp_server_name": 7}),
    ServerTool("mcp_toolset", "anthropic", {}), ServerTool("mcp", "openai-responses", {}),
)  # fmt: skip


@pytest.mark.parametrize("to", dialects())
@pytest.mark.parametrize("odd", [5, "text", [1], [["a", 1]], True, None], ids=repr)
def test_extras_of_the_wrong_kind_break_nothing(odd: Any, to: str) -> None:
    """A body is written, whatever stands in the place of a dialect's own fields."""
    extras = dict.fromkeys(dialects(), odd)
    tool = ToolDefinition("f", "F.", {"type": "object"}, defer_loading=True, extras=extras)
    request = Request(
        model="m",
        messages=(Message.user("Hi"),),
        tools=(tool, *_TOOLS),
        service=Service(user="u"),
        extras=extras,
    )
    encoded = dialect(to).encode_request(request)
    assert encoded.body["tools" if to != "ollama" else "messages"]


def test_a_server_without_an_address_is_not_named() -> None:
    """Anthropic would look for a server that the request does not have: it is lost, and told."""
    request = Request(model="m", messages=(Message.user("Hi"),), tools=(McpServer(label="d"),))
    encoded = dialect("anthropic").encode_request(request)
    assert "tools" not in encoded.body
    assert [loss.path for loss in encoded.losses] == ["tools[0]"]
