"""Calls of Anthropic's built-in tools, and how other providers' are shown to clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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

_ORIGIN = Origin(dialect="anthropic")
_SEARCH, _FETCH, _CODE, _BASH = "web_search", "web_fetch", "code_execution", "bash_code_execution"
_TOOLS, _FOUND = "tool_search_tool_bm25", "tool_search_tool_search_result"
_MCP = "mcp"


# --- decoding


def _read_call(part: ServerToolCall) -> ProviderCall | None:
    given, name = arguments_in(part.input), part.name
    if part.server is not None:
        return ProviderCall(McpServer, tool=name, server=part.server, arguments=compact(given))
    if name == _SEARCH or name.startswith("tool_search_tool"):
        kind = WebSearch if name == _SEARCH else ToolSearch
        key = "pattern" if "pattern" in given else "query"
        return ProviderCall(kind, one(given.get(key)), is_whole=has_only(given, key))
    if name == _FETCH:
        urls = one(given.get("url"))
        return ProviderCall(WebFetch, urls=urls, is_whole=has_only(given, "url"))
    if name in (_CODE, _BASH):
        key, language = ("code", "python") if name == _CODE else ("command", "bash")
        code = text(given.get(key))
        if code is None:
            return None
        is_whole = has_only(given, key)
        return ProviderCall(CodeExecution, code=code, language=language, is_whole=is_whole)
    return None


def _read_result(part: ServerToolResult) -> ProviderResult | None:
    content, kind = part.content, _KINDS.get(part.name)
    if kind is None:
        return None
    if part.name == _MCP:
        return _remote_result(part)
    if kind is WebSearch and isinstance(content, (list, tuple)):
        found = tuple(Source(text(w.get("url")), text(w.get("title"))) for w in mappings(content))
        return ProviderResult(
            kind, found, is_whole=not content
        )  # W71: the page content is encrypted
    if not isinstance(content, Mapping):
        return None
    if part.is_error:
        words = [*one(content.get("error_code")), *one(content.get("error_message"))]
        is_whole = has_only(content, "type", "error_code", "error_message")
        return ProviderResult(kind, failure=": ".join(words), is_whole=is_whole)
    read = _READERS.get(kind)
    return None if read is None else read(content)


def _remote_result(part: ServerToolResult) -> ProviderResult | None:
    content = part.content
    if isinstance(content, str):
        output, is_whole = content, True
    elif isinstance(content, (list, tuple)):
        texts = [w["text"] for w in mappings(content) if isinstance(w.get("text"), str)]
        output, is_whole = "\n".join(texts), len(texts) == len(content)
    else:
        return None
    if part.is_error:
        return ProviderResult(McpServer, failure=output, is_whole=is_whole)
    return ProviderResult(McpServer, output=output, is_whole=is_whole)


def _read_page(content: Mapping[str, Any]) -> ProviderResult:
    document: Any = content.get("content")
    document = document if isinstance(document, Mapping) else {}
    source: Any = document.get("source")
    is_text = isinstance(source, Mapping) and source.get("type") == "text"
    page = Source(
        text(content.get("url")),
        text(document.get("title")),
        text(source.get("data")) if is_text else None,
    )
    return ProviderResult(WebFetch, (page,), is_whole=is_text)


def _read_run(content: Mapping[str, Any]) -> ProviderResult:
    known = ("type", "stdout", "stderr", "return_code")
    return ProviderResult(
        CodeExecution,
        output=text(content.get("stdout")),
        errors=text(content.get("stderr")) or None,
        return_code=whole(content.get("return_code")),
        is_whole=has_only({k: v for k, v in content.items() if v not in ([], ())}, *known),
    )


def _read_tools(content: Mapping[str, Any]) -> ProviderResult:
    names = [
        name for w in mappings(content.get("tool_references")) for name in one(w.get("tool_name"))
    ]
    return ProviderResult(
        ToolSearch, tools=tuple(names), is_whole=has_only(content, "type", "tool_references")
    )


_KINDS: dict[str, type[ProviderTool]] = {
    _SEARCH: WebSearch,
    _FETCH: WebFetch,
    _CODE: CodeExecution,
    _BASH: CodeExecution,
    "tool_search": ToolSearch,
    _MCP: McpServer,
}
_READERS: dict[type[ProviderTool], Callable[[Mapping[str, Any]], ProviderResult]] = {
    WebFetch: _read_page,
    CodeExecution: _read_run,
    ToolSearch: _read_tools,
}


# --- encoding for clients


def _called(
    name: str, given: Mapping[str, Any], call_id: str, result: AnyPart | None
) -> tuple[AnyPart, ...]:
    call = ServerToolCall(name, call_id, given, origin=_ORIGIN)
    return (call,) if result is None else (call, result)


def _result(name: str, content: Any, call_id: str) -> ServerToolResult:
    return ServerToolResult(name, call_id, content, origin=_ORIGIN)


def _failed(name: str, call_id: str, code: str = "unavailable") -> ServerToolResult:
    content = {"type": f"{name}_tool_result_error", "error_code": code}
    return ServerToolResult(name, call_id, content, is_error=True, origin=_ORIGIN)


def _show_search(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    """Queries are joined to one call, since one block per query would need as many results."""
    result = None if call.outcome is None else _show_found(call.outcome, call_id)[0]
    return _called(_SEARCH, {"query": "; ".join(call.queries)}, call_id, result)


def _show_found(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    if result.failure is not None:
        return (_failed(_SEARCH, call_id),)
    found = [
        {"type": "web_search_result", "url": each.url, "title": each.title or each.url,
         "encrypted_content": "", "page_age": None}
        for each in result.sources if each.url is not None
    ]  # fmt: skip
    return (_result(_SEARCH, found, call_id),)


def _show_fetch(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    if len(call.urls) != 1:
        return ()
    result = None if call.outcome is None else _show_page(call.outcome, call_id)[0]
    return _called(_FETCH, {"url": call.urls[0]}, call_id, result)


def _show_page(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    page = result.sources[0] if len(result.sources) == 1 else Source()
    if result.failure is not None or page.url is None:
        return (_failed(_FETCH, call_id),)
    source = {"type": "text", "media_type": "text/plain", "data": page.text or ""}
    document = {"type": "document", "source": source, "title": page.title, "citations": None}
    content = {
        "type": "web_fetch_result",
        "url": page.url,
        "content": document,
        "retrieved_at": None,
    }
    return (_result(_FETCH, content, call_id),)


def _show_code(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    if call.code is None:
        return ()
    result = None if call.outcome is None else _show_run(call.outcome, call_id)[0]
    return _called(_CODE, {"code": call.code}, call_id, result)


def _show_run(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    failed = result.failure is not None
    content = {
        "type": "code_execution_result",
        "stdout": result.output or "",
        "stderr": result.errors or result.failure or "",
        "return_code": result.return_code if result.return_code is not None else int(failed),
        "content": [],
    }
    return (_result(_CODE, content, call_id),)


def _show_tools(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    result = None if call.outcome is None else _show_found_tools(call.outcome, call_id)[0]
    return _called(_TOOLS, {"query": " ".join(call.queries)}, call_id, result)


def _show_found_tools(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    if result.failure is not None:
        return (_failed("tool_search", call_id),)
    named = [{"type": "tool_reference", "tool_name": name} for name in result.tools]
    return (_result("tool_search", {"type": _FOUND, "tool_references": named}, call_id),)


def _show_remote(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    if call.tool is None:
        return ()
    given = arguments_in(call.arguments)
    made = ServerToolCall(call.tool, call_id, given, call.server or "", origin=_ORIGIN)
    return (made,) if call.outcome is None else (made, *_show_remote_result(call.outcome, call_id))


def _show_remote_result(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    failed = result.failure is not None
    content = [{"type": "text", "text": result.failure or result.output or "", "citations": None}]
    return (ServerToolResult(_MCP, call_id, content, failed, origin=_ORIGIN),)


CALLS = CallForms(
    _read_call,
    _read_result,
    {
        WebSearch: Shown(_show_search, _show_found),
        WebFetch: Shown(_show_fetch, _show_page),
        CodeExecution: Shown(_show_code, _show_run),
        ToolSearch: Shown(_show_tools, _show_found_tools),
        McpServer: Shown(_show_remote, _show_remote_result),
    },
    {
        McpServer: "mcptoolu",
        **dict.fromkeys((WebSearch, WebFetch, CodeExecution, ToolSearch), "srvtoolu"),
    },
)
"""Web search, web fetch, code execution, tool search and MCP."""
