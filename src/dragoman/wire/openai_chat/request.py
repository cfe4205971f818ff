"""Requests to `/chat/completions`."""

from __future__ import annotations

from typing import Any

from dragoman.model.requests import BLANK, Request
from dragoman.wire.encoded import Encoded
from dragoman.wire.json_values import is_object, want
from dragoman.wire.openai_chat.dialect import NAME, TARGET, ChatWriting
from dragoman.wire.openai_chat.request_messages import decode_messages, encode_messages
from dragoman.wire.openai_chat.settings import (
    SAMPLING,
    decode_output,
    decode_sampling,
    decode_state,
    decode_thinking_config,
    encode_output,
    encode_sampling,
    encode_state,
    encode_thinking_config,
    without_refused_fields,
)
from dragoman.wire.openai_chat.tools import (
    WEB_SEARCH,
    decode_choice,
    decode_tools,
    encode_choice,
    encode_tools,
)
from dragoman.wire.overlay import fields_of, has_overlay, overlay_of, with_overlay, words_of
from dragoman.wire.overlay_edits import Places, with_digests, without_edited
from dragoman.wire.settings_table import decode_settings, flag, setting, text
from dragoman.wire.target import Target

PATH = "/v1/chat/completions"
_PLAIN = (
    setting("model", "model", text),
    setting("stream", "stream", flag),
    setting("response_format", "output", decode_output),
)
PLACES: Places = {
    "model": "model",
    "stream": "stream",
    "tools": "tools",
    "functions": "tools",
    WEB_SEARCH: "tools",
    "tool_choice": "tool_choice",
    "function_call": "tool_choice",
    "parallel_tool_calls": "tool_choice.parallel",
    "response_format": "output",
    "reasoning_effort": "thinking",
    "reasoning": dict.fromkeys(("effort", "max_tokens", "enabled", "exclude"), "thinking"),
    "thinking": "thinking",
    "chat_template_kwargs": {"enable_thinking": "thinking"},
    "store": "state.store",
    **SAMPLING,
    # Further limits of llama.cpp, TGI and vLLM.
    "n_predict": "sampling.max_tokens",
    "max_new_tokens": "sampling.max_tokens",
    "max_output_tokens": "sampling.max_tokens",
    "best_of": "sampling.choices",
    "n_cmpl": "sampling.choices",
}
"""Request fields by wire field, including those that stay in the extras."""
_OTHERS = frozenset(
    key
    for key, place in PLACES.items()
    if not isinstance(place, str) or place.partition(".")[0] in ("tool_choice", "thinking", "state")
)
"""The fields of the tool choice, of thinking and of state: most requests have none."""


def decode_request(wire: dict[str, Any], _path: str | None = None) -> Request:
    """Decode a request body."""
    messages = want(wire, "messages", list, NAME, "$")
    used, words = {"messages"}, list[str]()
    fields: dict[str, Any] = decode_settings(wire, _PLAIN, used)
    fields["tools"] = decode_tools(wire, used)
    fields["sampling"] = decode_sampling(wire, used, words)
    if len(used) < len(wire) and not _OTHERS.isdisjoint(wire):
        fields["tool_choice"] = decode_choice(wire, used)
        fields["thinking"] = decode_thinking_config(wire, used)
        fields["state"] = decode_state(wire, used)
    is_read = len(used) == len(wire)
    if words or not is_read:
        fields["extras"] = overlay_of(wire, used, NAME, words=words)
    request = BLANK.replace_trusted(messages=decode_messages(messages), **fields)
    return request if is_read else with_digests(request, NAME, PLACES)


def encode_request(request: Request, target: Target = TARGET) -> Encoded:
    """Encode a request."""
    writing = ChatWriting(target)
    body: dict[str, Any] = {} if request.model is None else {"model": request.model}
    body["messages"] = encode_messages(request.system, request.messages, writing)
    if request.tools:
        encode_tools(request.tools, body, writing)
    if request.tool_choice is not None:
        encode_choice(request.tool_choice, request.tools, body, target)
    encode_sampling(request.sampling, body, words_of(request.extras, NAME), writing)
    if request.output is not None:
        body["response_format"] = encode_output(request.output, writing)
    if request.thinking is not None:
        encode_thinking_config(request.thinking, body, writing)
    if request.state is not None:
        encode_state(request.state, body)
    if request.stream is not None:
        body["stream"] = request.stream
    if has_overlay(request.extras, NAME):
        body = with_overlay(body, without_edited(request, NAME, PLACES), NAME)
    if target.fields.in_request is not None or target.fields.refused:
        body = without_refused_fields(body, writing)
    return Encoded(body, path=PATH, losses=tuple(writing.losses), repairs=tuple(writing.repairs),
                   context=writing.context)  # fmt: skip


def asks_for_usage(request: Request) -> bool:
    """Whether a client requests the usage in a stream."""
    options = fields_of(request.extras, NAME).get("stream_options")
    return is_object(options) and options.get("include_usage") is True
