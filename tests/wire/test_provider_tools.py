"""Provider tools are translated between dialects by kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Request, dialect, dialects, translate
from dragoman.model import ServerTool
from dragoman.model.provider_tools import ProviderTool
from dragoman.tools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
    Location,
    McpServer,
    Memory,
    Shell,
    ToolSearch,
    WebFetch,
    WebSearch,
)
from dragoman.wire.dialect import descriptions
from dragoman.wire.provider_tools import Form, Place, form_of, known_tool, written_tool

_FORMS = [
    (each.name, form)
    for each in descriptions()
    for form in each.provider_tools
    if not form.is_read_only
]
_ALL_FORMS = {each.name: each.provider_tools for each in descriptions()}
_NAMES = st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=3).map(tuple)
_LOCATIONS = st.builds(Location, city=st.text(min_size=1), country=st.just("CH"))
_TOOLS = st.one_of(
    st.builds(WebSearch, allowed_domains=_NAMES, max_uses=st.integers(1, 9), location=_LOCATIONS),
    st.builds(WebFetch, blocked_domains=_NAMES, citations=st.booleans()),
    st.builds(CodeExecution, file_ids=_NAMES) | st.builds(CodeExecution, container=st.text()),
    st.builds(FileSearch, stores=_NAMES, max_results=st.integers(1, 50), filters=st.text()),
    st.builds(McpServer, label=st.text(min_size=1), url=st.just("https://x.org/mcp"),
              allowed_tools=st.none() | _NAMES, authorization=st.none() | st.text()),
    st.builds(ToolSearch),
    st.builds(ImageGeneration, size=st.just("1024x1024"), quality=st.text(min_size=1)),
)  # fmt: skip


_NEEDED: dict[type[ProviderTool], dict[str, Any]] = {
    McpServer: {"label": "docs", "url": "u"},
    FileSearch: {"stores": ("s",)},
}


def _known(tool: ServerTool, name: str, fields: Any) -> ProviderTool | None:
    form = form_of(tool, _ALL_FORMS[name])
    return None if form is None else known_tool(tool, form, fields)


def _asking(*tools: Any, **extras: Any) -> Request:
    return Request(model="m-search", messages=(Message.user("Hi"),), tools=tools, extras=extras)


@pytest.mark.parametrize("to", dialects())
@given(tool=_TOOLS)
def test_every_option_arrives_or_is_reported(to: str, tool: ProviderTool) -> None:
    """The encoded tool decodes to the same tool, apart from options reported as lost."""
    encoded = dialect(to).encode_request(_asking(tool))
    lost = {loss.path.removeprefix("tools[0]").removeprefix(".") for loss in encoded.losses}
    if "" in lost:
        assert type(tool) not in [form.kind for form in _ALL_FORMS[to] if not form.is_read_only]
        return
    path = encoded.path
    (read,) = dialect(to).decode_request(encoded.body, path=path).tools
    assert isinstance(read, ServerTool)
    own = dialect(to).decode_request(encoded.body, path=path).extras.get(to, {})
    known = _known(read, to, own)
    assert known is not None
    needed: dict[str, Any] = {"label": tool.label} if isinstance(tool, McpServer) else {}
    plain = type(tool)(**needed)
    assert known == tool.replace(**{name: getattr(plain, name) for name in lost})


@pytest.mark.parametrize(("name", "form"), _FORMS, ids=lambda each: getattr(each, "name", each))
def test_a_tool_form_round_trips(name: str, form: Form) -> None:
    """A tool without options is encoded and decoded unchanged."""
    tool = form.kind(**_NEEDED.get(form.kind, {}))
    written = written_tool(tool, Place(name, (form,), "search"), "tools[0]", [])
    assert written is not None
    assert isinstance(written.tool, ServerTool)
    assert known_tool(written.tool, form, written.fields) == tool


_SEARCHES = {
    "anthropic": {"type": "web_search_20260209", "name": "web_search"},
    "gemini": {"googleSearch": {}},
    "openai-responses": {"type": "web_search_preview"},
}


@pytest.mark.parametrize("to", ["anthropic", "gemini", "openai-chat", "openai-responses"])
@pytest.mark.parametrize("source", _SEARCHES)
def test_a_web_search_is_translated_everywhere(source: str, to: str) -> None:
    """A web search is translated between all dialects that have one, without a loss."""
    field, content = ("contents", {"parts": [{"text": "Hi"}]}) if source == "gemini" else (
        "input" if source == "openai-responses" else "messages", {"content": "Hi"})  # fmt: skip
    body: dict[str, Any] = {field: [{"role": "user", **content}], "tools": [_SEARCHES[source]]}
    if source != "gemini":
        body["model"] = "m-search"
    path = "/v1beta/models/m-search:generateContent"
    request = dialect(source).decode_request(body, path=path)
    encoded = dialect(to).encode_request(request)
    assert encoded.losses == ()
    (tool,) = dialect(to).decode_request(encoded.body).tools
    assert isinstance(tool, ServerTool)
    assert isinstance(_known(tool, to, {}), WebSearch)


def test_an_mcp_server_is_translated() -> None:
    """Anthropic has servers in a field of their own, Responses in the tool."""
    server = {"type": "url", "name": "docs", "url": "https://x.org", "authorization_token": "t"}
    body: dict[str, Any] = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        "mcp_servers": [server],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "docs"}],
    }
    there = translate(body, source="anthropic", target="openai-responses")
    assert there.losses == ()
    (tool,) = there.body["tools"]
    told = {"server_label": "docs", "server_url": "https://x.org", "authorization": "t"}
    assert tool == {"type": "mcp", **told}
    back = translate(there.body, source="openai-responses", target="anthropic")
    assert back.body["tools"] == body["tools"]
    assert back.body["mcp_servers"] == body["mcp_servers"]
    assert back.headers["anthropic-beta"].startswith("mcp-client")


@pytest.mark.parametrize("to", ["openai-chat", "openai-responses", "gemini", "ollama"])
def test_a_client_run_tool_becomes_a_function(to: str) -> None:
    """Claude's shell is declared to other models with its own arguments."""
    body = {
        "model": "m",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": [{"type": "bash_20250124", "name": "bash"}],
    }
    encoded = translate(body, source="anthropic", target=to)
    assert encoded.losses == ()
    (tool,) = dialect(to).decode_request(encoded.body).tools
    assert tool.name == "bash"
    assert "command" in tool.parameters["properties"]  # type: ignore[union-attr, index]  # a function


def test_unsupported_tools_are_losses() -> None:
    """A tool that the dialect lacks is left out with a loss."""
    encoded = dialect("ollama").encode_request(_asking(WebSearch(), Shell(), Memory()))
    assert [loss.path for loss in encoded.losses] == ["tools[0]", "tools[1]", "tools[2]"]


def test_tools_print_no_secrets() -> None:
    """A server's token is never shown."""
    server = McpServer(label="docs", authorization="s3cret", headers={"a": "s3cret"})
    assert "s3cret" not in repr(server)


def test_the_docs_list_each_dialect_s_tools() -> None:
    """The page's tables equal what the dialects declare."""
    page = (Path(__file__).parents[2] / "docs" / "guides" / "provider-tools.md").read_text("utf-8")
    for each in descriptions():
        for form in each.provider_tools:
            row = next(line for line in page.splitlines() if f"| `{form.kind.__name__}` |" in line)
            assert f"`{form.name}`" in row
