"""The cells in which something is lost, and why: checked by the tests, listed in the docs."""

from __future__ import annotations

from typing import NamedTuple

_ALL = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
_TELLING = ("openai-chat", "openai-responses", "anthropic", "gemini")
"""Those with sealed state, and with counts of cached and reasoning tokens."""


class Known(NamedTuple):
    """Something in the provider's answer that the client doesn't see or can't send back."""

    client: str
    scenarios: tuple[str, ...]
    what: str
    reason: str
    backs: tuple[str, ...] = _ALL


_THINKING = ("thinking", "thinking and tools")
_OWN_COUNTS = "Ollama only counts prompt and output tokens"
LOSSES = (
    Known("ollama", _THINKING, "sealed state",
          "Ollama's messages have no field that clients send back unchanged", _TELLING),
    Known("ollama", ("usage",), "cached tokens", _OWN_COUNTS, _TELLING),
    Known("ollama", ("usage",), "reasoning tokens", _OWN_COUNTS, _TELLING),
    Known("ollama", ("errors",), "time to wait",
          "the SDK's `ResponseError` has a message and a status, but no headers"),
)  # fmt: skip


def losses_of(client: str, scenario: str, back: str) -> set[str]:
    """The known losses of a cell."""
    return {
        loss.what
        for loss in LOSSES
        if loss.client == client and scenario in loss.scenarios and back in loss.backs
    }
