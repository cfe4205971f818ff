"""What the measured clients have in common: how they are asked, and what."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

CHAT, ANTHROPIC = "openai-chat", "anthropic"
MODELS = {CHAT: "gpt-4.1", ANTHROPIC: "claude-sonnet-4-5"}
SHORT, LONG = 1, 101  # messages: the last is the user's
LIMIT = 1024  # tokens: Anthropic wants to know
_LINE = "Tell me more about the Old Bridge, its builders and the river it stands over. "


class Client(NamedTuple):
    """One of them: how to ask, and how to listen."""

    send: Callable[[int], Awaitable[Any]]
    """Ask with a conversation of that many messages."""
    stream: Callable[[int], AbstractAsyncContextManager[AsyncIterable[Any]]]
    is_text: Callable[[Any], bool]
    """Whether what came has text of the answer in it."""
    close: Callable[[], Awaitable[None]] | None = None


def _dicts(count: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": f"{n}. {_LINE * 3}"} for n in range(count)]


def by_size(make: Callable[[list[dict[str, Any]]], Any]) -> dict[int, Any]:
    """What is made of the conversations, by their numbers of messages."""
    return {size: make(_dicts(size)) for size in (SHORT, LONG)}
