"""A provider that can't verify reasoning it is said to have made (W27): once more, without it."""

from __future__ import annotations

from dragoman.errors import ProviderError
from dragoman.model.content import AnyPart
from dragoman.model.messages import Message
from dragoman.model.parts import Thinking
from dragoman.model.requests import Request

_CODES = frozenset({"invalid_encrypted_content", "invalid_thinking_signature"})


def verified(request: Request, error: ProviderError) -> Request:
    """What to send after an error: the same, or without reasoning that the provider refused."""
    return without_sealed_thinking(request) if is_unverified(error) else request


def is_unverified(error: ProviderError) -> bool:
    """Whether the provider refused a request for reasoning that it can't verify."""
    return error.code in _CODES


def without_sealed_thinking(request: Request) -> Request:
    """The request without what models thought, and its seals; the same where there is none."""
    messages = tuple([_spoken(message) for message in request.messages])
    is_same = all(new is old for new, old in zip(messages, request.messages, strict=True))
    return request if is_same else request.replace(messages=messages)


def _spoken(message: Message) -> Message:
    if not any(isinstance(part, Thinking) or part.signature for part in message.parts):
        return message
    parts = [part for part in message.parts if not isinstance(part, Thinking)]
    return message.replace(parts=tuple(map(_unsealed, parts)))


def _unsealed(part: AnyPart) -> AnyPart:
    # What thinking led to is tied to it by ids: it goes as something fresh (W24). Gemini seals
    # the parts themselves (W86).
    changes = {name: None for name in ("item_id", "signature") if getattr(part, name)}
    return part.replace(**changes) if changes else part
