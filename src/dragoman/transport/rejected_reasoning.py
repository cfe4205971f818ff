"""Retries without reasoning that the provider can't verify (W27) or has not stored (W25)."""

from __future__ import annotations

from dragoman.errors import InvalidRequest, ProviderError
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.requests import Request

_CODES = frozenset({"invalid_encrypted_content", "invalid_thinking_signature"})
_NOT_FOUND = 404


def verified(request: Request, error: ProviderError) -> Request:
    """The request to send after an error: unchanged, or without the rejected reasoning."""
    return without_sealed_thinking(request) if is_unverified(error) else request


def is_unverified(error: ProviderError) -> bool:
    """Whether the provider rejected reasoning that it can't verify or find.

    OpenAI stores nothing for some customers, whatever they request: W25's 404.
    """
    is_lost = error.status == _NOT_FOUND and error.param == "input"
    return error.code in _CODES or (is_lost and isinstance(error, InvalidRequest))


def without_sealed_thinking(request: Request) -> Request:
    """The request without thinking and its signatures; unchanged if it has none."""
    messages = tuple([_spoken(message) for message in request.messages])
    is_same = all(new is old for new, old in zip(messages, request.messages, strict=True))
    return request if is_same else request.replace(messages=messages)


def _spoken(message: Message) -> Message:
    if not any(isinstance(part, Thinking) or part.signature for part in message.parts):
        return message
    parts = [part for part in message.parts if not isinstance(part, Thinking)]
    return message.replace_unchecked(parts=tuple(map(_unsealed, parts)))


def _unsealed(part: AnyPart) -> AnyPart:
    # The results of thinking refer to it by ids, so they are sent as new items (W24). Gemini signs
    # the parts themselves (W86).
    changes = {name: None for name in ("item_id", "signature") if getattr(part, name)}
    return part.replace_unchecked(**changes) if changes else part
