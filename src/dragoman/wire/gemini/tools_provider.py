"""Google's built-in tools as our provider tool classes, and their calls.

Code and its output are parts of a message. Searches are in the metadata of the message; Gemini 3
may also report them as parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.frozen import thaw
from dragoman.model.parts import Citation, Origin, ServerToolCall, ServerToolResult
from dragoman.model.provider_tools import (
    CodeExecution,
    ComputerUse,
    FileSearch,
    McpServer,
    ProviderTool,
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
    has_only,
    mappings,
    strings,
)
from dragoman.wire.provider_tools import Form, Option
from dragoman.wire.settings_table import text, texts, whole

# --- their declarations

_ENVIRONMENTS = {"ENVIRONMENT_BROWSER": "browser"}


def _environment(value: Any) -> str | None:
    return _ENVIRONMENTS.get(value) if isinstance(value, str) else None


def _headers(value: Any) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) and value else None


def _environment_wire(value: str) -> str | None:
    return "ENVIRONMENT_BROWSER" if value == "browser" else None


FORMS = (
    Form(
        WebSearch,
        "googleSearch",
        (Option("excludeDomains", "blocked_domains", texts),),
        "googleSearch|enterpriseWebSearch|googleSearchRetrieval",
    ),
    Form(WebFetch, "urlContext"),
    Form(CodeExecution, "codeExecution"),
    Form(
        FileSearch,
        "fileSearch",
        (
            Option("fileSearchStoreNames", "stores", texts),
            Option("topK", "max_results", whole),
            Option("metadataFilter", "filters", text, text),
        ),
        needs="stores",
    ),
    Form(
        ComputerUse,
        "computerUse",
        (Option("environment", "environment", _environment, _environment_wire),),
    ),
    Form(
        McpServer,
        "mcpServers",
        (
            Option("name", "label", text),
            Option("streamableHttpTransport.url", "url", text),
            Option("streamableHttpTransport.headers", "headers", _headers, thaw),
        ),
        needs="url",
    ),
)
"""The wire formats of the provider tools that Google supports. For MCP servers see `tools`."""

# --- their calls

_NAME = "gemini"
_ORIGIN = Origin(dialect=_NAME)
_CODE = "code_execution"
_OK, _FAILED = "OUTCOME_OK", "OUTCOME_FAILED"
GROUNDING, URL_CONTEXT = "groundingMetadata", "urlContextMetadata"
_KINDS: dict[str, type[ProviderTool]] = {
    "GOOGLE_SEARCH_WEB": WebSearch,
    "FILE_SEARCH": FileSearch,
    "URL_CONTEXT": WebFetch,
    GROUNDING: WebSearch,
    URL_CONTEXT: WebFetch,
}


# --- decoding


def _read_call(part: ServerToolCall) -> ProviderCall | None:
    given = arguments_in(part.input)
    if part.name == _CODE:
        code = part.input if isinstance(part.input, str) else text(given.get("code"))
        if code is None:
            return None
        language = text(given.get("language")) or "PYTHON"
        named = "python" if language == "PYTHON" else None
        is_whole = has_only(given, "code", "language")
        return ProviderCall(CodeExecution, code=code, language=named, is_whole=is_whole)
    kind = _KINDS.get(part.name)
    if kind is None:
        return None
    outcome = (
        _read_result(ServerToolResult(part.name, content=given))
        if _is_from_metadata(part)
        else None
    )
    queries = strings(given.get("queries")) or strings(given.get("webSearchQueries"))
    urls = strings(given.get("urls")) or strings([w.get("retrievedUrl") for w in _pages(given)])
    return ProviderCall(
        kind,
        queries,
        urls,
        outcome=outcome,
        is_whole=_is_from_metadata(part) or has_only(given, "queries", "urls"),
    )


def _is_from_metadata(part: ServerToolCall | ServerToolResult) -> bool:
    return part.name in (GROUNDING, URL_CONTEXT)


def _pages(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return mappings(metadata.get("urlMetadata"))


def _read_result(part: ServerToolResult) -> ProviderResult | None:
    content, kind = arguments_in(part.content), _KINDS.get(part.name)
    if part.name == _CODE:
        output = part.content if isinstance(part.content, str) else text(content.get("output"))
        is_whole = has_only(content, "outcome", "output")
        if part.is_error:
            return ProviderResult(CodeExecution, failure=output or "", is_whole=is_whole)
        return ProviderResult(CodeExecution, output=output, is_whole=is_whole)
    if kind is None:
        return None
    if kind is WebFetch:
        failed = [w for w in _pages(content) if w.get("urlRetrievalStatus") != _FETCHED]
        found = [Source(text(w.get("retrievedUrl"))) for w in _pages(content)]
        failure = "" if failed and len(failed) == len(found) else None
        return ProviderResult(kind, tuple(found), failure=failure, is_whole=False)
    found = list(_chunks(content))
    return ProviderResult(kind, tuple(found), is_whole=not content)


_FETCHED = "URL_RETRIEVAL_STATUS_SUCCESS"


def _chunks(metadata: Mapping[str, Any]) -> Iterator[Source]:
    for chunk in mappings(metadata.get("groundingChunks")):
        for place in mappings([chunk.get("web"), chunk.get("retrievedContext")]):
            url, title = text(place.get("uri")), text(place.get("title"))
            yield Source(url, title, text(place.get("text")))


def _parts_from_metadata(
    extras: Mapping[str, Any], cited: Sequence[Citation]
) -> tuple[AnyPart, ...]:
    """The searches and pages in the metadata of a candidate.

    Pages that texts cite (`cited`) have been removed from the metadata.
    """
    ours = extras.get(_NAME)
    found: list[AnyPart] = []
    for name in (GROUNDING, URL_CONTEXT):
        metadata = ours.get(name) if isinstance(ours, Mapping) else None
        if not isinstance(metadata, Mapping):
            continue
        keys = ("webSearchQueries", "groundingChunks", "urlMetadata")
        given = {key: metadata[key] for key in keys if metadata.get(key)}
        if not given.keys() & {"webSearchQueries", "urlMetadata"}:
            continue
        if name == GROUNDING and "groundingChunks" not in given and cited:
            sources = dict.fromkeys((each.url, each.title) for each in cited if each.url)
            given["groundingChunks"] = [{"web": {"uri": u, "title": t}} for u, t in sources]
        found.append(ServerToolCall(name, input=given))
    return tuple(found)


# --- encoding for clients


def _show_code(call: ProviderCall, _call_id: str) -> tuple[AnyPart, ...]:
    if call.code is None:
        return ()
    language = "PYTHON" if call.language == "python" else "LANGUAGE_UNSPECIFIED"
    given = {"language": language, "code": call.code}
    return (ServerToolCall(_CODE, input=given, origin=_ORIGIN),)


def _show_run(result: ProviderResult, _call_id: str) -> tuple[AnyPart, ...]:
    failed = result.failure is not None or bool(result.return_code)
    texts = [each for each in (result.output, result.errors, result.failure) if each]
    content = {"outcome": _FAILED if failed else _OK, "output": "\n".join(texts)}
    return (ServerToolResult(_CODE, None, content, failed, origin=_ORIGIN),)


def _show_search(call: ProviderCall, call_id: str) -> tuple[AnyPart, ...]:
    """In the format in which Gemini 3 reports its own searches."""
    name = _NAMES[call.kind]
    given = {"urls": list(call.urls)} if call.kind is WebFetch else {"queries": list(call.queries)}
    made = ServerToolCall(name, call_id, given, origin=_ORIGIN)
    return (made,) if call.outcome is None else (made, *_show_found(call.outcome, call_id))


def _show_found(result: ProviderResult, call_id: str) -> tuple[AnyPart, ...]:
    found = [
        {key: value for key, value in source._asdict().items() if value is not None}
        for source in result.sources
    ]
    content: dict[str, Any] = {"results": found}
    if result.failure is not None:
        content = {"error": result.failure}
    made = ServerToolResult(_NAMES[result.kind], call_id, content, origin=_ORIGIN)
    return (made,)


_NAMES: dict[type[ProviderTool], str] = {
    WebSearch: "GOOGLE_SEARCH_WEB",
    WebFetch: "URL_CONTEXT",
    FileSearch: "FILE_SEARCH",
}
_SEARCH = Shown(_show_search, _show_found)


CALLS = CallForms(
    _read_call,
    _read_result,
    {CodeExecution: Shown(_show_code, _show_run), **dict.fromkeys(_NAMES, _SEARCH)},
    are_signed=True,
    accepted=frozenset({CodeExecution}),
    beside=_parts_from_metadata,
)
"""Code, web and file searches, and pages."""


def is_from_metadata(part: AnyPart) -> bool:
    """Whether a part was decoded from metadata, so that requests can't hold it."""
    return isinstance(part, ServerToolCall) and _is_from_metadata(part)
