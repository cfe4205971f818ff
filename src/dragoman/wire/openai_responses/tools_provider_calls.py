"""Calls of OpenAI's built-in tools, and how other providers' are shown to clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.parts import Origin, ServerToolCall, ServerToolResult
from dragoman.model.provider_tools import (
    CodeExecution,
    FileSearch,
    ImageGeneration,
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
    strings,
)
from dragoman.wire.settings_table import text

_NAME = "openai-responses"
_ORIGIN = Origin(dialect=_NAME)
_UNDONE = frozenset({"failed", "incomplete"})


# --- decoding


def _read_call(part: ServerToolCall) -> ProviderCall | None:
    read = _CALLS.get(part.name)
    return None if read is None else read(arguments_in(part.input), part)


def _has_failed(part: ServerToolCall) -> bool:
    form = part.extras.get(_NAME)
    status = form.get("status") if isinstance(form, Mapping) else None
    return isinstance(status, str) and status in _UNDONE


def _unreported(part: ServerToolCall, kind: type[ProviderTool]) -> ProviderResult:
    return ProviderResult(kind, failure="" if _has_failed(part) else None)


def _read_search(given: Mapping[str, Any], part: ServerToolCall) -> ProviderCall | None:
    action = given.get("action")
    if not isinstance(action, Mapping):  # xAI sends arguments instead
        arguments = arguments_in(given.get("arguments"))
        queries, is_whole = one(arguments.get("query")), has_only(arguments, "query")
        outcome = _unreported(part, WebSearch)
        return ProviderCall(WebSearch, queries, outcome=outcome, is_whole=is_whole)
    if action.get("type") in ("open_page", "find_in_page"):
        outcome, pages = _unreported(part, WebFetch), one(action.get("url"))
        looked_for = one(action.get("pattern"))
        is_whole = has_only(action, "type", "url", "pattern") and has_only(given, "action")
        return ProviderCall(WebFetch, looked_for, pages, outcome=outcome, is_whole=is_whole)
    queries = strings(action.get("queries")) or one(action.get("query"))
    found = [
        Source(text(w.get("url")), text(w.get("title"))) for w in mappings(action.get("sources"))
    ]
    outcome = _unreported(part, WebSearch)._replace(sources=tuple(found))
    is_whole = has_only(action, "type", "query", "queries", "sources") and has_only(given, "action")
    return ProviderCall(WebSearch, queries, outcome=outcome, is_whole=is_whole)


def _read_code(given: Mapping[str, Any], part: ServerToolCall) -> ProviderCall | None:
    code = text(given.get("code"))
    if code is None:
        return None
    is_unreported = "outputs" in given and given["outputs"] is None
    outcome = _unreported(part, CodeExecution) if is_unreported else None
    language, is_whole = "python", has_only(given, "code")
    return ProviderCall(
        CodeExecution, code=code, language=language, outcome=outcome, is_whole=is_whole
    )


def _read_program(given: Mapping[str, Any], _part: ServerToolCall) -> ProviderCall | None:
    code = text(given.get("code"))
    if code is None:
        return None
    is_whole = has_only(given, "code")
    return ProviderCall(CodeExecution, code=code, language="javascript", is_whole=is_whole)


def _read_files(given: Mapping[str, Any], part: ServerToolCall) -> ProviderCall:
    is_unreported = "results" in given and given["results"] is None
    outcome = _unreported(part, FileSearch) if is_unreported else None
    queries, is_whole = strings(given.get("queries")), has_only(given, "queries")
    return ProviderCall(FileSearch, queries, outcome=outcome, is_whole=is_whole)


def _read_image_generation(given: Mapping[str, Any], _part: ServerToolCall) -> ProviderCall:
    prompt = one(given.get("revised_prompt")) or one(given.get("prompt"))
    is_whole = has_only(given, "revised_prompt", "prompt")
    return ProviderCall(ImageGeneration, prompt, is_whole=is_whole)


def _read_remote(given: Mapping[str, Any], part: ServerToolCall) -> ProviderCall | None:
    name, arguments = text(given.get("name")), text(given.get("arguments"))
    if name is None:
        return None
    is_unreported = "output" in given and given["output"] is None
    outcome = _unreported(part, McpServer) if is_unreported else None
    is_whole = has_only(given, "name", "arguments")
    return ProviderCall(
        McpServer, tool=name, server=part.server, arguments=arguments, outcome=outcome,
        is_whole=is_whole,
    )  # fmt: skip


def _read_listing(given: Mapping[str, Any], part: ServerToolCall) -> ProviderCall:
    names = [name for tool in mappings(given.get("tools")) for name in one(tool.get("name"))]
    failure = given.get("error")
    failed = None if failure is None else _failure(failure)
    found = ProviderResult(McpServer, tools=tuple(names), failure=failed)
    return ProviderCall(McpServer, server=part.server, outcome=found, is_whole=False)


_QUERY_ARGUMENTS = frozenset({"query", "queries", "paths", "goal"})


def _read_tool_search(given: Mapping[str, Any], _part: ServerToolCall) -> ProviderCall | None:
    if given.get("execution") == "client":  # the client runs it
        return None
    arguments = arguments_in(given.get("arguments"))
    queries = tuple(q for v in arguments.values() for q in (one(v) or strings(v)))
    is_known = bool(arguments) and all(one(v) or strings(v) for v in arguments.values())
    is_known = (
        is_known and arguments.keys() <= _QUERY_ARGUMENTS
    )  # other arguments can't be represented
    is_known = is_known or given.get("arguments") in (None, {}, "{}")
    is_whole = is_known and has_only(given, "arguments", "execution")
    return ProviderCall(ToolSearch, queries, is_whole=is_whole)


_CALLS = {
    "web_search": _read_search,
    "code_interpreter": _read_code,
    "program": _read_program,
    "file_search": _read_files,
    "image_generation": _read_image_generation,
    "mcp": _read_remote,
    "mcp_list_tools": _read_listing,
    "tool_search": _read_tool_search,
}


def _read_result(part: ServerToolResult) -> ProviderResult | None:
    read = _RESULTS.get(part.name)
    return None if read is None else read(part.content, part)


def _read_run(content: Any, _part: ServerToolResult) -> ProviderResult | None:
    if not isinstance(content, (list, tuple)):
        return None
    logs = [w["logs"] for w in mappings(content) if isinstance(w.get("logs"), str)]
    return ProviderResult(CodeExecution, output="\n".join(logs), is_whole=len(logs) == len(content))


def _read_program_end(content: Any, part: ServerToolResult) -> ProviderResult | None:
    output_text = text(content.get("result")) if isinstance(content, Mapping) else None
    if output_text is None:
        return None
    failure = output_text if part.is_error else None
    output = None if part.is_error else output_text
    is_whole = has_only(content, "result")
    return ProviderResult(CodeExecution, output=output, failure=failure, is_whole=is_whole)


def _read_found_files(content: Any, _part: ServerToolResult) -> ProviderResult | None:
    if not isinstance(content, (list, tuple)):
        return None
    found = [Source(None, text(w.get("filename")), text(w.get("text"))) for w in mappings(content)]
    is_whole = all(has_only(w, "filename", "text") for w in mappings(content))
    return ProviderResult(FileSearch, tuple(found), is_whole=is_whole)


def _read_mcp_result(content: Any, part: ServerToolResult) -> ProviderResult | None:
    if part.is_error:
        return ProviderResult(McpServer, failure=_failure(content))
    return ProviderResult(McpServer, output=content) if isinstance(content, str) else None


def _failure(error: Any) -> str:
    if isinstance(error, str):
        return error
    return compact(error)


def _read_found_tools(content: Any, part: ServerToolResult) -> ProviderResult | None:
    if not isinstance(content, Mapping):
        return None
    tools = mappings(content.get("tools"))
    inner = [each for tool in tools for each in (mappings(tool.get("tools")) or [tool])]
    names = [name for tool in inner for name in one(tool.get("name"))]
    failure = "" if part.is_error else None
    return ProviderResult(ToolSearch, tools=tuple(names), failure=failure, is_whole=False)


_RESULTS = {
    "code_interpreter": _read_run,
    "program": _read_program_end,
    "file_search": _read_found_files,
    "mcp": _read_mcp_result,
    "tool_search": _read_found_tools,
}


# --- encoding for clients


def _item(name: str, given: Mapping[str, Any], item_id: str, server: str | None = None) -> AnyPart:
    return ServerToolCall(name, item_id, given, server, item_id=item_id, origin=_ORIGIN)


def _inside(name: str, content: Any, item_id: str, *, is_error: bool | None = None) -> AnyPart:
    return ServerToolResult(name, item_id, content, is_error, item_id=item_id, origin=_ORIGIN)


def _show_search(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    action: dict[str, Any] = {"type": "search", "query": "; ".join(call.queries)}
    if len(call.queries) > 1:
        action["queries"] = list(call.queries)
    found = () if call.outcome is None else call.outcome.sources
    if urls := [source.url for source in found if source.url is not None]:
        action["sources"] = [{"type": "url", "url": url} for url in urls]
    return (_item("web_search", {"action": action}, item_id),)


def _show_fetch(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    action = {"type": "open_page", "url": call.urls[0] if len(call.urls) == 1 else None}
    return (_item("web_search", {"action": action}, item_id),) if call.urls else ()


def _show_code(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    if call.code is None:
        return ()
    # There is no OpenAI container.
    made = _item("code_interpreter", {"code": call.code, "container_id": ""}, item_id)
    return (made,) if call.outcome is None else (made, *_show_run(call.outcome, item_id))


def _show_run(result: ProviderResult, item_id: str) -> tuple[AnyPart, ...]:
    texts = [each for each in (result.output, result.errors, result.failure) if each]
    logs = [{"type": "logs", "logs": each} for each in texts]
    return (_inside("code_interpreter", logs, item_id),)


def _show_files(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    made = _item("file_search", {"queries": list(call.queries)}, item_id)
    return (made,) if call.outcome is None else (made, *_show_found_files(call.outcome, item_id))


def _show_found_files(result: ProviderResult, item_id: str) -> tuple[AnyPart, ...]:
    found = [{"filename": each.title, "text": each.text} for each in result.sources]
    return (_inside("file_search", found, item_id),)


def _show_remote(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    if call.tool is None:
        return ()
    given = {"name": call.tool, "arguments": call.arguments or "{}"}
    made = _item("mcp", given, item_id, call.server or "")
    return (made,) if call.outcome is None else (made, *_show_mcp_result(call.outcome, item_id))


def _show_mcp_result(result: ProviderResult, item_id: str) -> tuple[AnyPart, ...]:
    if result.failure is not None:
        error = {
            "type": "mcp_tool_execution_error",
            "content": [{"type": "text", "text": result.failure}],
        }
        return (_inside("mcp", error, item_id, is_error=True),)
    return (_inside("mcp", result.output or "", item_id),)


def _show_tool_search(call: ProviderCall, item_id: str) -> tuple[AnyPart, ...]:
    given = {"arguments": {"query": " ".join(call.queries)}, "execution": "server"}
    made = _item("tool_search", given, item_id)
    return (made,) if call.outcome is None else (made, *_show_found_tools(call.outcome, item_id))


def _show_found_tools(result: ProviderResult, item_id: str) -> tuple[AnyPart, ...]:
    tools = [
        {"type": "function", "name": name, "parameters": None, "strict": None}
        for name in result.tools
    ]
    content = {"execution": "server", "tools": tools}
    own_id = item_id.replace("tsc_", "tso_", 1)
    return (ServerToolResult("tool_search", item_id, content, item_id=own_id, origin=_ORIGIN),)


CALLS = CallForms(
    _read_call,
    _read_result,
    {
        WebSearch: Shown(_show_search, lambda *_: ()),
        WebFetch: Shown(_show_fetch, lambda *_: ()),
        CodeExecution: Shown(_show_code, _show_run),
        FileSearch: Shown(_show_files, _show_found_files),
        McpServer: Shown(_show_remote, _show_mcp_result),
        ToolSearch: Shown(_show_tool_search, _show_found_tools),
    },
    {WebSearch: "ws", WebFetch: "ws", CodeExecution: "ci", FileSearch: "fs", McpServer: "mcp",
     ToolSearch: "tsc"},
    joins_results=True,
    are_bound=True,
)  # fmt: skip
"""Web search (with opened pages), code, files, images, MCP and tool search."""
