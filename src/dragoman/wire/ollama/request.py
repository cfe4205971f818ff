"""Requests to `/api/chat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import InvalidInputError, WireError
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.wire import overlay
from dragoman.wire.agreement import Bearings, agreed, with_notes
from dragoman.wire.dialect import Body
from dragoman.wire.encoded import Encoded
from dragoman.wire.ollama.exchange import Outgoing
from dragoman.wire.ollama.messages import decode_messages, encode_messages
from dragoman.wire.ollama.settings import (
    SAMPLING,
    decode_output,
    decode_sampling,
    decode_thinking_config,
    encode_output,
    encode_sampling,
    encode_thinking_config,
)
from dragoman.wire.ollama.spelling import NAME, is_list, kept, laid
from dragoman.wire.ollama.target import TARGET
from dragoman.wire.ollama.tools import decode_tools, encode_tools
from dragoman.wire.target import Target

PATH = "/api/chat"
"""Where requests go: the server's `/v1` speaks OpenAI Chat, and many a body would do for both."""


_BEARINGS: Bearings = {
    "model": "model",
    "stream": "stream",
    "tools": "tools",
    "format": "output",
    "think": "thinking",
    **SAMPLING,
}


def decode_request(body: Body) -> Request:
    """The request in a body; one without messages loads the model, or unloads it."""
    wire = overlay.parsed(body, NAME)
    if wire.get("messages") is not None:
        overlay.want(wire, "messages", list, NAME, "$")
    try:
        return _decode(wire)
    except InvalidInputError as error:
        problem = str(error)
    # Outside the handler: the model's error, which says the same, is not its context.
    raise WireError(problem, dialect=NAME, path="$")


def _decode(wire: Mapping[str, Any]) -> Request:
    known, written = set[str](), dict[str, Any]()
    model, messages, stream = wire.get("model"), wire.get("messages"), wire.get("stream")
    if isinstance(model, str):
        known.add("model")
    if is_list(messages):
        known.add("messages")
    else:
        messages, written["messages"] = [], []
    if isinstance(stream, bool):
        known.add("stream")
    else:  # W101: who says nothing gets a stream
        stream = written["stream"] = True
    output = decode_output(wire.get("format"))
    if output is not None:
        known.add("format")
    thinking = decode_thinking_config(wire.get("think"))
    if thinking is not None:
        known.add("think")
    sampling, options = decode_sampling(wire, known)
    tools = decode_tools(wire.get("tools"), known)
    left = {key: value for key, value in wire.items() if key not in known}
    if options:
        left["options"] = options
    request = Request(
        model=model if isinstance(model, str) else None,
        messages=decode_messages(messages),
        tools=tools,
        sampling=sampling,
        output=output,
        thinking=thinking,
        stream=stream,
        extras=kept(left, (), written),
    )
    return request if request.extras is EMPTY else with_notes(request, NAME, _BEARINGS)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """The body to send for a request. Elsewhere a request that says nothing gets no stream."""
    out = Outgoing(takes_anything=not target.is_strict)
    body: dict[str, Any] = {} if request.model is None else {"model": request.model}
    body["messages"] = encode_messages(request.system, request.messages, out)
    if tools := encode_tools(request, out):
        body["tools"] = tools
    if request.output is not None:
        encode_output(request.output, body, out)
    if request.thinking is not None:
        encode_thinking_config(request.thinking, body, out)
    encode_sampling(request.sampling, body, out)
    body["stream"] = request.stream or False  # W101
    if request.extras is not EMPTY:
        body = laid(body, agreed(request, NAME, _BEARINGS))
    return Encoded(body, path=PATH, losses=tuple(out.losses), repairs=tuple(out.repairs),
                   context=out.schemas.context)  # fmt: skip
