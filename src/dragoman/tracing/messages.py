"""Message content as span attributes, if content capture is enabled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dragoman.model.media import Media
from dragoman.model.messages import Message
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult

_MODALITIES = frozenset({"image", "audio", "video"})


def request_content(request: Request) -> dict[str, str]:
    """The attributes for the system prompt, messages and tools of a request."""
    found = {"gen_ai.input.messages": _json([_message(each) for each in request.messages])}
    if request.system:
        found["gen_ai.system_instructions"] = _json([_part(each) for each in request.system])
    tools = [
        {"type": "function", "name": each.name, "description": each.description,
         "parameters": each.parameters}
        for each in request.tools if isinstance(each, ToolDefinition)
    ]  # fmt: skip
    if tools:
        found["gen_ai.tool.definitions"] = _json(tools)
    return found


def response_content(response: Response) -> dict[str, str]:
    """The attribute for the answers."""
    answers = [
        {**_message(choice.message), "finish_reason": choice.finish or "stop"}
        for choice in response.choices
    ]
    return {"gen_ai.output.messages": _json(answers)}


def conversation_content(messages: Iterable[Message]) -> str:
    """A conversation as a span attribute."""
    return _json([_message(each) for each in messages])


def result_content(result: ToolResult) -> str:
    """The result of a tool."""
    return _json(_response(result))


def _message(message: Message) -> dict[str, Any]:
    return {"role": str(message.role), "parts": [_part(part) for part in message.parts]}


def _part(part: Any) -> dict[str, Any]:
    match part:
        case Text() | Refusal():
            return {"type": "text", "content": part.text}
        case Thinking():
            return {"type": "reasoning", "content": part.text}
        case ToolCall():
            arguments = part.object_arguments()
            said: Any = part.raw_arguments if arguments is None else arguments
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": said}
        case ToolResult():
            return {"type": "tool_call_response", "id": part.call_id, "response": _response(part)}
        case Media():
            return _media(part)
        case _:
            return {"type": type(part).__name__.lower()}


def _response(result: ToolResult) -> Any:
    if isinstance(result.content, str):
        return result.content
    return [_part(part) for part in result.content]


def _media(part: Media) -> dict[str, Any]:
    """The type and location of media; its bytes don't belong in a trace."""
    kind = type(part).__name__.lower()
    found: dict[str, Any] = {"modality": kind} if kind in _MODALITIES else {}
    if part.mime:
        found["mime_type"] = part.mime
    if part.url is not None and not part.url.startswith("data:"):
        return {"type": "uri", **found, "uri": part.url}
    return {"type": "blob", **found}


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except (UnicodeError, msgspec.MsgspecError, RecursionError):  # such as a lone surrogate
        return json.dumps(value, default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
