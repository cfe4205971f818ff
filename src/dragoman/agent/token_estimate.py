"""Estimates the tokens of a prompt, without a network or a tokenizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.history.part_tokens import Size, size_of_message, size_of_parts, size_of_tools
from dragoman.interop.reader import read_request
from dragoman.model.requests import AnyTool, Request
from dragoman.providers.translation import target_of
from dragoman.wire.dialect import dialect


def estimate_tokens(
    messages: Any, *, model: str | None = None, tools: Iterable[AnyTool] = ()
) -> int:
    """The tokens that a conversation takes as a prompt, estimated offline.

    >>> estimate_tokens("What is the weather in Basel?")
    12

    `messages` is whatever `Messages.from_any` takes, or a `Request`. With a `model` (a provider or
    `provider:model`), only what would be sent to it is counted: without another provider's
    thinking, for example. Models have different tokenizers, most of them not public: the estimate
    is for their average, and rather too high. `await client.count_tokens(…)` asks the provider.
    """
    request = read_request(messages)
    if tools:
        request = request.replace(tools=(*request.tools, *tools))
    return _size(request if model is None else _sent(request, model)).total


def _sent(request: Request, model: str) -> Request:
    """The request as the model would get it."""
    if not request.messages:
        return request
    target = target_of(model)
    spoken = dialect(target.dialect)
    meant = request.replace(model=target.model or request.model or "any")
    encoded = spoken.encode_request(meant, target)
    return spoken.decode_request(encoded.body, path=encoded.path, headers=encoded.headers)


def _size(request: Request) -> Size:
    size = size_of_parts(request.system) + size_of_tools(request.tools)
    for message in request.messages:
        size += size_of_message(message)
    return size
