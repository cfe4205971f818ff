"""Echoed client settings: cached by content, and never shared."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.model.jsontext import dumps
from dragoman.wire import front_settings
from dragoman.wire.lane import switch

DIALECTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
TOOL = dragoman.ToolDefinition("f", "What it does.", {"type": "object", "properties": {}})

values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 1.0, "", "\ud800", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def bodies_of(name: str, request: dragoman.Request) -> list[bytes]:
    """The settings that a front echoes: first computed, then cached, then from the cache."""
    with switch.off():
        written = dumps(dragoman.Front(name, request).asked)
    return [written, *(dumps(dragoman.Front(name, request).asked) for _ in range(2))]


@pytest.mark.parametrize("name", DIALECTS)
@given(extra=values, temperature=st.sampled_from([None, 0, 1, 1.0]), has_tool=st.booleans())
def test_cached_settings_equal_computed_ones(
    name: str, extra: Any, temperature: float | None, *, has_tool: bool
) -> None:
    """For any request, the cached settings are the same bytes as the computed ones."""
    request = dragoman.Request(
        model="m",
        tools=(TOOL,) if has_tool else (),
        sampling=dragoman.model.Sampling(temperature=temperature),
        extras={name: {"odd": extra}},
    )
    written, first, again = bodies_of(name, request)
    assert first == again == written


def test_cached_settings_are_never_shared() -> None:
    """Changing one front's settings does not change those of another with the same request."""
    request = dragoman.Request(model="m", tools=(TOOL,))
    one: Any = dragoman.Front("openai-responses", request).asked
    one["tools"].clear()
    assert dragoman.Front("openai-responses", request).asked["tools"]


def test_long_settings_are_not_cached() -> None:
    """Only short settings are cached, up to a limit."""
    front_settings._cached.cache_clear()
    system = (dragoman.Text("x" * 5000),)
    assert dragoman.Front("openai-responses", dragoman.Request(system=system)).asked
    assert front_settings._cached.cache_info().currsize == 0
    for number in range(200):
        assert dragoman.Front("openai-responses", dragoman.Request(model=str(number))).asked
    assert front_settings._cached.cache_info().currsize <= 128
