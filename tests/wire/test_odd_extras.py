"""Malformed extras, as stored documents and callers may contain them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Message, Request, ToolDefinition, dialect, dialects
from dragoman.model import ServerTool, Service
from dragoman.tools import CodeExecution, McpServer, WebSearch

pytestmark = pytest.mark.whole

_TOOLS: Any = (
    WebSearch(), CodeExecution(container="c"), McpServer(label="d", url="u"),
    ServerTool("mcp_toolset", "anthropic", {"mcp_server_name": 7}),
    ServerTool("mcp_toolset", "anthropic", {}), ServerTool("mcp", "openai-responses", {}),
)  # fmt: skip


@pytest.mark.parametrize("to", dialects())
@pytest.mark.parametrize("odd", [5, "text", [1], [["a", 1]], True, None], ids=repr)
def test_malformed_extras_do_no_harm(odd: Any, to: str) -> None:
    """A request is encoded, whatever is in the extras of a dialect."""
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


def test_an_mcp_server_without_an_address_is_a_loss() -> None:
    """Anthropic would look for a server that the request does not have."""
    request = Request(model="m", messages=(Message.user("Hi"),), tools=(McpServer(label="d"),))
    encoded = dialect("anthropic").encode_request(request)
    assert "tools" not in encoded.body
    assert [loss.path for loss in encoded.losses] == ["tools[0]"]
