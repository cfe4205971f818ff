"""Calls of built-in tools (Groq's `executed_tools`) and their results.

OpenAI's own API does not report such calls, so clients are shown none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.parts import ServerToolCall, ServerToolResult
from dragoman.model.provider_tools import CodeExecution, ProviderTool, WebFetch, WebSearch
from dragoman.wire.provider_calls import (
    CallForms,
    ProviderCall,
    ProviderResult,
    Source,
    arguments_in,
    has_only,
    mappings,
    one,
)
from dragoman.wire.settings_table import text

_KINDS: dict[str, type[ProviderTool]] = {
    "search": WebSearch,
    "browser_search": WebSearch,
    "browser.search": WebSearch,
    "visit": WebFetch,
    "browser.open": WebFetch,
    "python": CodeExecution,
    "code_interpreter": CodeExecution,
}


def _read_call(part: ServerToolCall) -> ProviderCall | None:
    given, kind = arguments_in(part.input), _KINDS.get(part.name)
    if kind is WebSearch:
        return ProviderCall(kind, one(given.get("query")), is_whole=has_only(given, "query"))
    if kind is WebFetch and isinstance(given.get("url"), str):
        return ProviderCall(kind, urls=one(given["url"]), is_whole=has_only(given, "url"))
    code = text(given.get("code"))
    if kind is not CodeExecution or code is None:
        return None
    return ProviderCall(kind, code=code, language="python", is_whole=has_only(given, "code"))


def _read_result(part: ServerToolResult) -> ProviderResult | None:
    content, kind = part.content, _KINDS.get(part.name)
    if kind is None or not isinstance(content, Mapping):
        return None
    output = text(content.get("output"))
    filled: dict[str, Any] = {k: v for k, v in content.items() if v and v != {"results": []}}
    found: tuple[Source, ...] = ()
    if kind is WebSearch:
        results = content.get("search_results")
        listed = mappings(results.get("results")) if isinstance(results, Mapping) else []
        found = tuple(
            Source(text(w.get("url")), text(w.get("title")), text(w.get("content"))) for w in listed
        )
    is_whole = has_only(filled, "output")
    # The output of a search is its list of results as text.
    return ProviderResult(kind, found, output=None if found else output, is_whole=is_whole)


CALLS = CallForms(_read_call, _read_result, are_bound=True)
"""Groq's searches, pages and code."""
