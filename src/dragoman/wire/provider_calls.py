"""Calls of provider tools in a dialect-independent form: the call and its result.

A dialect decodes its calls and results into the values here (`Description.provider_calls`). In a
request to another dialect they become text, since no provider accepts another's calls (W71); a
client behind a front is shown them in its own dialect's form (`Shown`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dragoman.errors import InvalidInputError
from dragoman.model.content import AnyPart
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads
from dragoman.model.parts import Citation, ServerToolCall, ServerToolResult
from dragoman.model.provider_tools import ProviderTool
from dragoman.wire.settings_table import text


class Source(NamedTuple):
    """A search result, or a page that was fetched."""

    url: str | None = None
    title: str | None = None
    text: str | None = None


class ProviderResult(NamedTuple):
    """The result of a call."""

    kind: type[ProviderTool]
    sources: tuple[Source, ...] = ()
    output: str | None = None
    """The output of a program or an MCP tool."""
    errors: str | None = None
    """The standard error output of a program."""
    return_code: int | None = None
    failure: str | None = None
    """Why the call failed; None if it succeeded."""
    tools: tuple[str, ...] = ()
    """The names of the tools that a tool search found."""
    is_whole: bool = True
    """Whether the wire object has no further content."""


class ProviderCall(NamedTuple):
    """A call's input."""

    kind: type[ProviderTool]
    queries: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    """The pages to fetch."""
    code: str | None = None
    language: str | None = None
    tool: str | None = None
    """The name of an MCP server's tool."""
    server: str | None = None
    arguments: str | None = None
    """As JSON."""
    outcome: ProviderResult | None = None
    """The result, for a call that has no result of its own on the wire."""
    is_whole: bool = True
    """Whether the wire object has no further content."""


class Shown(NamedTuple):
    """How a dialect shows the calls of one kind to its clients."""

    call: Callable[[ProviderCall, str], tuple[AnyPart, ...]]
    """The parts for a call, given its id; empty if it can't be shown."""
    result: Callable[[ProviderResult, str], tuple[AnyPart, ...]]
    """The parts for its result, given the id of the call."""


class CallForms(NamedTuple):
    """How a dialect represents calls of its provider's tools."""

    call: Callable[[ServerToolCall], ProviderCall | None]
    """Decode a call; None if its kind is unknown or it can't be read."""
    result: Callable[[ServerToolResult], ProviderResult | None]
    shown: Mapping[type[ProviderTool], Shown] = MappingProxyType({})
    """How calls are shown to a client, by kind."""
    prefixes: Mapping[type[ProviderTool], str] = MappingProxyType({})
    """Prefixes of the ids of calls, by kind."""
    are_signed: bool = False
    """Whether such parts carry opaque state themselves (Gemini's `thoughtSignature`)."""
    joins_results: bool = False
    """Whether a result is in the same object as its call, and so must directly follow it."""
    accepted: frozenset[type[ProviderTool]] = frozenset()
    """The kinds that the API accepts from any source: they are not signed."""
    are_bound: bool = False
    """Whether calls are sent back only to the provider and model that made them."""
    beside: Callable[[Mapping[str, Any], Sequence[Citation]], tuple[AnyPart, ...]] | None = None
    """The calls that a response reports beside its content, given a choice's extras and the
    citations of its texts. Requests of this dialect don't contain them."""


# --- as text

_BACKTICKS = "```"


def call_text(call: ProviderCall) -> str:
    """Describe a call as text, for a model that can't be sent the call itself."""
    about, more = _HEADINGS.get(call.kind.__name__, "Used a tool"), list[str]()
    if call.tool is not None:
        about = f"Called the tool {call.tool}"
    if call.server is not None:
        about += f" of the MCP server {call.server}"
    said = (*call.queries, *call.urls)
    heading = f"[{about}: {'; '.join(said)}]" if said else f"[{about}]"
    if call.code is not None:
        more.append(_fenced(call.code, call.language or ""))
    if call.arguments is not None:
        more.append(call.arguments)
    told = "" if call.outcome is None else result_text(call.outcome)
    return "\n".join([heading, *more, *([told] if told else [])])


def result_text(result: ProviderResult) -> str:
    """Describe the result of a call as text; empty if nothing is known about it."""
    told: list[str] = []
    if result.failure is not None:
        told.append(f"[The call failed: {result.failure}]" if result.failure else "[It failed]")
    if result.sources:
        told += ["[Sources]", *map(_source_line, result.sources)]
    if result.tools:
        told.append(f"[Tools found: {', '.join(result.tools)}]")
    if result.output:
        told += ["[Output]", _fenced(result.output)]
    if result.errors:
        told += ["[Error output]", _fenced(result.errors)]
    if result.return_code:
        told.append(f"[Exit code {result.return_code}]")
    return "\n".join(told)


_HEADINGS = {
    "WebSearch": "Searched the web",
    "WebFetch": "Read a page",
    "CodeExecution": "Ran code",
    "FileSearch": "Searched files",
    "ImageGeneration": "Generated an image",
    "McpServer": "Listed the tools",
    "ToolSearch": "Searched for tools",
}


def _source_line(source: Source) -> str:
    named = " ".join(
        [*([source.title] if source.title else []), *([f"<{source.url}>"] if source.url else [])]
    )
    line = f"- {named}" if named else "-"
    return f"{line}\n{_fenced(source.text)}" if source.text else line


def _fenced(said: str, language: str = "") -> str:
    fence = _BACKTICKS
    while fence in said:
        fence += "`"
    return f"{fence}{language}\n{said.removesuffix(chr(10))}\n{fence}"


def unknown_text(part: ServerToolCall | ServerToolResult) -> str | None:
    """Describe a call or result of an unknown kind by name and JSON; None if it isn't JSON."""
    if isinstance(part, ServerToolCall):
        heading, said = f"[Called the tool {part.name}]", part.input
        if part.server is not None:
            heading = f"[Called the tool {part.name} of the MCP server {part.server}]"
    else:
        failed = "failed" if part.is_error else "returned"
        heading, said = f"[The tool {part.name} {failed}]", part.content
    if said is None or said in ("", {}, []):
        return heading
    try:
        return f"{heading}\n{said if isinstance(said, str) else compact(said)}"
    except InvalidInputError:
        return None


# --- shared by the dialects' decoders


def compact(value: Any) -> str:
    """A value as JSON."""
    return dumps(value).decode("utf-8")


def arguments_in(value: Any) -> Mapping[str, Any]:
    """Arguments as an object, parsed if they are text; empty if they are not an object."""
    if isinstance(value, str):
        try:
            value = loads(value)
        except InvalidInputError:
            return EMPTY
    return value if isinstance(value, Mapping) else EMPTY


def strings(values: Any) -> tuple[str, ...]:
    """The strings in a list."""
    found: Iterable[Any] = values if isinstance(values, (list, tuple)) else ()
    return tuple([value for value in found if isinstance(value, str)])


def one(value: Any) -> tuple[str, ...]:
    """A tuple with the value if it is a string, else empty."""
    found = text(value)
    return () if found is None else (found,)


def has_only(fields: Mapping[str, Any], *names: str) -> bool:
    """Whether an object has no other fields; null values don't count."""
    return all(key in names or value is None for key, value in fields.items())


def mappings(values: Any) -> list[Mapping[str, Any]]:
    """The objects in a list."""
    found: Iterable[Any] = values if isinstance(values, (list, tuple)) else ()
    return [value for value in found if isinstance(value, Mapping)]
