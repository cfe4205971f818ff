"""Calls of Anthropic's built-in tools, and how other providers' are shown to clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from dragoman.model.content import AnyPart
from dragoman.model.parts import Origin, ServerToolCall, ServerToolResult
from dragoman.model.provider_tools import (
    CodeExecution,
    McpServer,
    ProviderTool,
    ToolSearch,
    WebFetch,
    WebSearch,
)
from dragoman.wire.provider_calls import (
    CallForms,
    ProviderCall,
    ProviderResult,
    Shown,
    Source,
    arguments_in,
    compact,
    has_only,
    mappings,
    one,
)
from dragoman.wire.settings_table import text, whole
from dragoman.wire.violations import field

_ORIGIN = Origin(dialect="anthropic")
_MCP = "mcp"
Given = Mapping[str, Any]


class _Tool(NamedTuple):
    """How calls of one built-in tool are read and shown."""

    name: str
    kind: type[ProviderTool]
    call: Callable[[Given], ProviderCall | None]
    """Decode the arguments."""
    result: Callable[[Any], ProviderResult | None]
    """Decode the content of a result that is no error."""
    given: Callable[[ProviderCall], Given | None]
    """Encode the arguments; None if they can't be shown."""
    content: Callable[[ProviderResult], Any]
    """Encode the content of a result; None if it can't be shown, as one that failed."""
    answer: str = ""
    """The name that results have, if it is another."""


# --- searches, and the search for tools


def _queries(kind: type[ProviderTool]) -> Callable[[Given], ProviderCall]:
    def read(given: Given) -> ProviderCall:
        key = "pattern" if "pattern" in given else "query"
        return ProviderCall(kind, one(given.get(key)), is_whole=has_only(given, key))

    return read


def _read_found(content: Any) -> ProviderResult | None:
    if not isinstance(content, (list, tuple)):
        return None
    found = tuple(Source(text(w.get("url")), text(w.get("title"))) for w in mappings(content))
    # W71: the page content is encrypted
    return ProviderResult(WebSearch, found, is_whole=not content)


def _show_found(result: ProviderResult) -> list[Given] | None:
    if result.failure is not None:
        return None
    return [
        {"type": "web_search_result", "url": each.url, "title": each.title or each.url,
         "encrypted_content": "", "page_age": None}
        for each in result.sources if each.url is not None
    ]  # fmt: skip


def _read_tools(content: Any) -> ProviderResult | None:
    if not isinstance(content, Mapping):
        return None
    listed = mappings(content.get("tool_references"))
    names = tuple(name for w in listed for name in one(w.get("tool_name")))
    is_whole = has_only(content, "type", "tool_references")
    return ProviderResult(ToolSearch, tools=names, is_whole=is_whole)


def _show_tools(result: ProviderResult) -> Given | None:
    if result.failure is not None:
        return None
    named = [{"type": "tool_reference", "tool_name": name} for name in result.tools]
    return {"type": "tool_search_tool_search_result", "tool_references": named}


# --- pages


def _read_address(given: Given) -> ProviderCall:
    return ProviderCall(WebFetch, urls=one(given.get("url")), is_whole=has_only(given, "url"))


def _read_page(content: Any) -> ProviderResult | None:
    if not isinstance(content, Mapping):
        return None
    document = field(content, "content")
    source = field(document, "source")
    is_text = source.get("type") == "text"
    said = text(source.get("data")) if is_text else None
    page = Source(text(content.get("url")), text(document.get("title")), said)
    return ProviderResult(WebFetch, (page,), is_whole=is_text)


def _show_page(result: ProviderResult) -> Given | None:
    page = result.sources[0] if len(result.sources) == 1 else Source()
    if result.failure is not None or page.url is None:
        return None
    source = {"type": "text", "media_type": "text/plain", "data": page.text or ""}
    document = {"type": "document", "source": source, "title": page.title, "citations": None}
    return {"type": "web_fetch_result", "url": page.url, "content": document, "retrieved_at": None}


# --- programs


def _program(key: str, language: str) -> Callable[[Given], ProviderCall | None]:
    def read(given: Given) -> ProviderCall | None:
        code, is_whole = text(given.get(key)), has_only(given, key)
        call = ProviderCall(CodeExecution, code=code, language=language, is_whole=is_whole)
        return None if code is None else call

    return read


def _read_run(content: Any) -> ProviderResult | None:
    if not isinstance(content, Mapping):
        return None
    told = {key: value for key, value in content.items() if value not in ([], ())}
    return ProviderResult(
        CodeExecution,
        output=text(content.get("stdout")),
        errors=text(content.get("stderr")) or None,
        return_code=whole(content.get("return_code")),
        is_whole=has_only(told, "type", "stdout", "stderr", "return_code"),
    )


def _show_run(result: ProviderResult) -> Given:
    code = int(result.failure is not None) if result.return_code is None else result.return_code
    errors = result.errors or result.failure or ""
    return {"type": "code_execution_result", "stdout": result.output or "", "stderr": errors,
            "return_code": code, "content": []}  # fmt: skip


# --- tools of MCP servers


def _read_remote(part: ServerToolResult) -> ProviderResult | None:
    content = part.content
    if isinstance(content, str):
        output, is_whole = content, True
    elif isinstance(content, (list, tuple)):
        texts = [w["text"] for w in mappings(content) if isinstance(w.get("text"), str)]
        output, is_whole = "\n".join(texts), len(texts) == len(content)
    else:
        return None
    failure, said = (output, None) if part.is_error else (None, output)
    return ProviderResult(McpServer, output=said, failure=failure, is_whole=is_whole)


def _show_remote(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    if call.tool is None:
        return ()
    given = arguments_in(call.arguments)
    made = ServerToolCall(call.tool, call_id, given, call.server or "", origin=_ORIGIN)
    return (made,) if call.outcome is None else (made, *_show_remote_result(call.outcome, call_id))


def _show_remote_result(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    said = result.failure or result.output or ""
    content = [{"type": "text", "text": said, "citations": None}]
    failed = result.failure is not None
    return (ServerToolResult(_MCP, call_id, content, failed, origin=_ORIGIN),)


# --- the tools

_TOOLS = (
    # Queries are joined to one call, since one block per query would need as many results.
    _Tool("web_search", WebSearch, _queries(WebSearch), _read_found,
          lambda call: {"query": "; ".join(call.queries)}, _show_found),
    _Tool("web_fetch", WebFetch, _read_address, _read_page,
          lambda call: {"url": call.urls[0]} if len(call.urls) == 1 else None, _show_page),
    _Tool("bash_code_execution", CodeExecution, _program("command", "bash"), _read_run,
          lambda _call: None, _show_run),
    _Tool("code_execution", CodeExecution, _program("code", "python"), _read_run,
          lambda call: None if call.code is None else {"code": call.code}, _show_run),
    _Tool("tool_search_tool_bm25", ToolSearch, _queries(ToolSearch), _read_tools,
          lambda call: {"query": " ".join(call.queries)}, _show_tools, answer="tool_search"),
)  # fmt: skip
"""Of several of one kind, the last is shown."""
_BY_NAME = {tool.name: tool for tool in _TOOLS}
_BY_ANSWER = {tool.answer or tool.name: tool for tool in _TOOLS}
_BY_KIND = {tool.kind: tool for tool in _TOOLS}


def _read_call(part: ServerToolCall) -> ProviderCall | None:
    given, name = arguments_in(part.input), part.name
    if part.server is not None:
        return ProviderCall(McpServer, tool=name, server=part.server, arguments=compact(given))
    tool = _BY_KIND[ToolSearch] if name.startswith("tool_search_tool") else _BY_NAME.get(name)
    return None if tool is None else tool.call(given)


def _read_result(part: ServerToolResult) -> ProviderResult | None:
    if part.name == _MCP:
        return _read_remote(part)
    content, tool = part.content, _BY_ANSWER.get(part.name)
    if tool is None or not (part.is_error and isinstance(content, Mapping)):
        return None if tool is None else tool.result(content)
    words = [*one(content.get("error_code")), *one(content.get("error_message"))]
    is_whole = has_only(content, "type", "error_code", "error_message")
    return ProviderResult(tool.kind, failure=": ".join(words), is_whole=is_whole)


def _show_call(tool: _Tool, call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    given = tool.given(call)
    if given is None:
        return ()
    made = ServerToolCall(tool.name, call_id, given, origin=_ORIGIN)
    return (made,) if call.outcome is None else (made, *_show_result(tool, call.outcome, call_id))


def _show_result(tool: _Tool, result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    name, content, failed = tool.answer or tool.name, tool.content(result), None
    if content is None:
        content, failed = {"type": f"{name}_tool_result_error", "error_code": "unavailable"}, True
    return (ServerToolResult(name, call_id, content, failed, origin=_ORIGIN),)


CALLS = CallForms(
    _read_call,
    _read_result,
    {
        McpServer: Shown(_show_remote, _show_remote_result),
        **{
            kind: Shown(partial(_show_call, tool), partial(_show_result, tool))
            for kind, tool in _BY_KIND.items()
        },
    },
    {McpServer: "mcptoolu", **dict.fromkeys(_BY_KIND, "srvtoolu")},
)
"""Web search, web fetch, code execution, tool search and MCP."""
