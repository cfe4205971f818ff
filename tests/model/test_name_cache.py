"""Names that clients choose are cached if they are short: memory stays bounded."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

import dragoman
from dragoman.model.name_cache import cached_by_name
from dragoman.providers.context_windows import listed_size


def test_short_names_are_cached_and_long_ones_are_not() -> None:
    """Both give the same result."""
    asked: list[str] = []

    @cached_by_name(8)
    def length(name: str, *, twice: bool = False) -> int:
        asked.append(name)
        return len(name) * (2 if twice else 1)

    assert [length("ab"), length("ab"), length("ab", twice=True)] == [2, 2, 4]
    assert [length("x" * 300), length("x" * 300)] == [300, 300]
    assert list(map(len, asked)) == [2, 2, 300, 300]


@pytest.mark.parametrize("target", ["openai", "gemini", "google"])
def test_long_model_names_are_not_kept(target: str) -> None:
    """A hundred requests with model names of 100 KB leave nothing of them in memory."""
    turn = {"role": "user", "content": "Hi"}

    def ask(model: str) -> None:
        body = {"model": model, "messages": [turn]}
        dragoman.translate(body, source="openai-chat", target=target)  # not as bytes: no heads
        listed_size(model)

    ask("m")
    tracemalloc.start()
    try:
        for number in range(100):
            ask(f"{number}" + "x" * 100_000)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2_000_000
