"""Settings at and beyond their limits, in pairs, and requests without a conversation, to anywhere.

What comes out has no error of `check`, or there is a `DragomanError`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

import dragoman
from dragoman import target_of
from dragoman.errors import DragomanError
from tests.peers.settings import SOURCES, joined

TARGETS = (
    *dragoman.dialects(),
    "openai:gpt-4.1", "openai:gpt-5", "openai:gpt-5.5", "openai:o3-mini",
    "anthropic:claude-3-5-haiku-latest", "anthropic:claude-3-7-sonnet-latest",
    "anthropic:claude-sonnet-4-5", "anthropic:claude-opus-4-5", "anthropic:claude-opus-4-6",
    "anthropic:claude-sonnet-5-5", "anthropic:claude-opus-5-5",
    "google:gemini-2.0-flash", "google:gemini-2.5-flash", "google:gemini-2.5-pro",
    "google:gemini-3-pro-preview",
    "groq:openai/gpt-oss-20b", "groq:llama-3.3-70b-versatile", "mistral:mistral-large-latest",
    "deepseek:deepseek-v4-flash", "xai:grok-4-fast", "openrouter:z-ai/glm-5", "vllm:Qwen/Qwen3-8B",
    "llama.cpp:who-knows", "perplexity:sonar", "openai-compatible:m",
)  # fmt: skip
_SPARSE = 41
"""Of all pairs, with all targets, `make test` tries every 41st."""


def _spoken(target: str) -> str:
    """The dialect of a target."""
    return target if target in dragoman.dialects() else target_of(target).dialect


def faults(body: dict[str, Any], source: str, target: str) -> list[str]:
    """The errors of `check` in what comes of a body for a target."""
    try:
        encoded = dragoman.translate(body, source=source, target=target)
    except DragomanError:
        return []
    found = dragoman.check(encoded.body, target=target, path=encoded.path, headers=encoded.headers)
    return [f"{one.rule} {one.path}: {one.message}" for one in found if one.severity == "error"]


def _is_accepted(body: dict[str, Any], source: str) -> bool:
    found = dragoman.dialect(source).check(body)
    return all(each.severity != "error" for each in found)


def _pairs(source: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Bodies with two settings that their own dialect accepts together, each with a target."""
    start, settings = SOURCES[source]
    targets = [target for target in TARGETS if _spoken(target) != source]
    for one, other in combinations(settings, 2):
        for first in settings[one]:
            for second in settings[other]:
                body = joined(start, first, second)
                yield from ((body, target) for target in targets)


@pytest.mark.whole
@pytest.mark.parametrize("source", SOURCES)
def test_settings_at_and_beyond_their_limits(source: str) -> None:
    """One setting, whatever its value, breaks no request in another dialect."""
    start, settings = SOURCES[source]
    wrong = {
        f"{target} {added}": found
        for values in settings.values()
        for added in values
        for target in TARGETS
        if _spoken(target) != source and (found := faults(joined(start, added), source, target))
    }
    assert wrong == {}


@pytest.mark.whole
@pytest.mark.parametrize("source", SOURCES)
def test_some_pairs_of_settings(source: str) -> None:
    """Two settings that their own dialect accepts together break no request in another."""
    wrong = {
        f"{target} {body}": found
        for number, (body, target) in enumerate(_pairs(source))
        if number % _SPARSE == 0
        and _is_accepted(body, source)
        and (found := faults(body, source, target))
    }
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_all_pairs_of_settings(source: str) -> None:
    """The same for every pair and every target."""
    wrong = {
        f"{target} {body}": found
        for body, target in _pairs(source)
        if _is_accepted(body, source) and (found := faults(body, source, target))
    }
    assert wrong == {}
