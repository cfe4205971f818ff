"""Counts the tokens of a prompt: by the provider if supported, else estimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil

from dragoman.errors import InvalidRequest, ModelNotFound, ProviderError
from dragoman.model.catalogue import TokenCount
from dragoman.model.jsontext import dumps
from dragoman.model.media import Media
from dragoman.model.parts import Part, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.providers.endpoints import USUAL, Endpoints
from dragoman.transport.exchanges import Line
from dragoman.wire.json_values import opened
from dragoman.wire.services import services

Estimator = Callable[[Request], int]

_ABSENT = frozenset({404, 405, 501})
_BYTES_PER_TOKEN = 3.5  # too high wastes some space, too low breaks the next request
_PER_MESSAGE = 4
_PER_MEDIUM = 1_000


async def count_tokens(
    line: Line, request: Request, estimate: Estimator | None = None
) -> TokenCount:
    """The tokens of a request's prompt.

    If the provider only counts in another of its dialects (OpenAI does, in Responses), that one is
    used if it has the model. Without any counter, `estimate` is used; a server that turned out to
    have none is not asked again.
    """
    line = line.reaching(request.model)
    for name in _dialects(line):
        try:
            return TokenCount(await _counted(line.speaking(name), request))
        except ProviderError as error:
            if _is_absent(error):
                line.deployment.lacking.add((name, "count"))
            elif name == line.dialect or not isinstance(error, (InvalidRequest, ModelNotFound)):
                raise
    return TokenCount((estimate or estimated)(request), is_estimate=True)


def _dialects(line: Line) -> Iterator[str]:
    """The dialects in which the provider counts tokens, the current one first."""
    provider = line.deployment.provider
    # If the model name determines the dialect, the model supports no other.
    others = () if provider.routes else provider.dialects
    for name in dict.fromkeys((line.dialect, *others)):
        is_lacking = (name, "count") in line.deployment.lacking
        if not is_lacking and _endpoints(line, name).count and services(name).counts:
            yield name


def _endpoints(line: Line, name: str) -> Endpoints:
    found = line.deployment.provider.endpoints.get(name) or USUAL.get(name)
    return found or Endpoints(generate="")


def _is_absent(error: ProviderError) -> bool:
    """Whether the server has no token counter; an unknown model is a different error."""
    return error.status in _ABSENT and not isinstance(error, ModelNotFound)


async def _counted(line: Line, request: Request) -> int:
    found = line.needs(services(line.dialect).counts, "counts")
    deployment = line.deployment
    target = deployment.target(request.model)
    encoded = deployment.dialect.encode_request(request, target)
    named = target.model if _endpoints(line, line.dialect).wraps_counts else None
    body = dumps(found.encode(encoded.body, named))
    message = deployment.request("count", body, model=request.model, headers=encoded.headers)
    answer = await line.exchange(message)
    return found.decode(opened(answer.body, line.dialect))


# --- the estimate


def estimated(request: Request) -> int:
    """A rough estimate of a prompt's tokens: by its bytes, and a fixed amount per media part."""
    parts = [*request.system, *(part for message in request.messages for part in message.parts)]
    size = sum(map(_size, parts)) + sum(map(_tool_size, request.tools))
    framing = _PER_MESSAGE * len(request.messages)
    return ceil(size / _BYTES_PER_TOKEN) + framing + _PER_MEDIUM * sum(map(_media, parts))


def _size(part: Part) -> int:
    """The bytes of a part's text."""
    if isinstance(part, (Text, Thinking)):
        return _bytes(part.text or "")
    if isinstance(part, ToolCall):
        return _bytes(part.name) + _bytes(part.raw_arguments)
    if isinstance(part, ToolResult):
        content = part.content
        return _bytes(content) if isinstance(content, str) else sum(map(_size, content))
    return 0


def _media(part: Part) -> int:
    if isinstance(part, ToolResult) and not isinstance(part.content, str):
        return sum(map(_media, part.content))
    return int(isinstance(part, Media))


def _tool_size(tool: object) -> int:
    if not isinstance(tool, ToolDefinition):
        return 0
    return len(dumps(tool.parameters)) + _bytes(tool.name) + _bytes(tool.description or "")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
