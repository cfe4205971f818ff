"""Translating in one call, to a dialect, a provider or one of its models."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Target, detect, translate
from dragoman.errors import ConfigError, LossError, WireError
from dragoman.providers.translation import lane_of
from dragoman.wire.flags import IdFlags

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("target", dragoman.dialects())
def test_a_plain_request_is_translated_into_every_dialect(target: str) -> None:
    """From a dict or from bytes, without a loss."""
    encoded = translate(HELLO, source="openai-chat", target=target, strict=True)
    assert encoded.losses == ()
    again = translate(b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}',
                      source="openai-chat", target=target)  # fmt: skip
    assert again.body == encoded.body
    assert detect(encoded.body, path=encoded.path) == target


def test_a_target_value_can_be_given() -> None:
    """A `Target` in place of a dialect's name adapts the request to that deployment."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "x"},
        ],
    }
    nine = Target(dialect="openai-chat", ids=IdFlags(pattern=r"[a-zA-Z0-9]{9}", max_length=9))
    messages = translate(body, source="openai-chat", target=nine).body["messages"]
    found = messages[1]["tool_calls"][0]["id"]
    assert len(found) == 9
    assert messages[2]["tool_call_id"] == found


def test_strict_raises_if_something_is_lost() -> None:
    """The error carries the losses."""
    body = {**HELLO, "top_k": 1, "messages": [{"role": "user", "name": "Ann", "content": "Hi"}]}
    assert translate(body, source="openai-chat", target="anthropic").losses
    with pytest.raises(LossError) as caught:
        translate(body, source="openai-chat", target="anthropic", strict=True)
    assert caught.value.losses


def test_a_broken_body_is_a_wire_error() -> None:
    """The error names the dialect that the body was read as."""
    with pytest.raises(WireError) as caught:
        translate({"messages": 3}, source="openai-chat", target="gemini")
    assert caught.value.dialect == "openai-chat"


def test_names_that_were_aliased_come_back() -> None:
    """A tool called by its alias in the response has its own name again, given the context."""
    tool = {"type": "function", "function": {"name": "a.b", "parameters": {"type": "object"}}}
    encoded = translate({**HELLO, "tools": [tool]}, source="openai-chat", target="anthropic")
    alias = encoded.body["tools"][0]["name"]
    assert alias != "a.b"
    answer = {
        "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
        "content": [{"type": "tool_use", "id": "t", "name": alias, "input": {}}],
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    response = dragoman.dialect("anthropic").decode_response(answer, encoded.context)
    assert response.tool_calls[0].name == "a.b"


@pytest.mark.parametrize("name", dragoman.providers.provider_names())
def test_a_plain_request_is_translated_for_every_provider(name: str) -> None:
    """A provider's name, its value and its target are all accepted as a target."""
    encoded = translate(HELLO, source="openai-chat", target=f"{name}:some-model", strict=True)
    found = dragoman.provider(name)
    assert encoded.body == translate(
        HELLO, source="openai-chat", target=found.target("some-model")
    ).body  # fmt: skip
    by_value = translate(HELLO, source="openai-chat", target=found)
    if name not in dragoman.dialects():  # where a dialect has the same name, it is meant
        assert by_value.body == translate(HELLO, source="openai-chat", target=name).body
    assert by_value.losses == ()


def test_the_model_that_is_named_takes_the_place_of_the_request_s() -> None:
    """A model in the target is the one asked; without one, the request's own."""
    for target, model in [("groq:llama-3.3-70b", "llama-3.3-70b"), ("groq", "m"),
                          ("ollama:llama3.2:3b", "llama3.2:3b"), ("openai-chat", "m")]:  # fmt: skip
        assert translate(HELLO, source="openai-chat", target=target).body["model"] == model


def test_the_requests_model_is_used_if_the_target_names_none() -> None:
    """Facts about a model apply, whether the target or the request names it."""
    body = {**HELLO, "model": "o3", "max_tokens": 9, "temperature": 0.5}
    encoded = translate(body, source="openai-chat", target="openai")
    assert encoded.body == {
        "model": "o3", "messages": HELLO["messages"], "max_completion_tokens": 9
    }  # fmt: skip
    assert [loss.path for loss in encoded.losses] == ["sampling.temperature"]


@pytest.mark.parametrize("target", ["nobody", "nobody:m", "groq:", ":m", "", "gemini:"])
def test_an_unknown_target_raises(target: str) -> None:
    """The error lists the known targets and doesn't repeat the unknown one."""
    with pytest.raises(ConfigError) as caught:
        translate(HELLO, source="openai-chat", target=target)
    assert "nobody" not in str(caught.value)


def test_a_vertex_request_names_its_model_in_the_path() -> None:
    """Claude on Vertex has a version in the body, and no model."""
    found: Any = translate(HELLO, source="openai-chat", target="vertex:claude-sonnet-4-5")
    assert found.body["anthropic_version"] == "vertex-2023-10-16"
    assert "model" not in found.body


def test_only_built_in_dialects_have_a_fast_lane() -> None:
    """A dialect of an installed package uses the general path.

    Even if it is derived from a built-in one.
    """
    assert all(lane_of(name) is not None for name in ("openai-chat", "anthropic", "gemini"))
    assert lane_of("somebody-elses") is None
