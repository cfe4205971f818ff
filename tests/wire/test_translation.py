"""Translating in one call, and telling dialects apart."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import InvalidInputError, LossError, WireError
from dragoman.wire.target import Target
from dragoman.wire.translation import detect, translate
from tests.corpus import Corpus
from tests.wire.recorded import bodies

HELLO = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.mark.parametrize("target", dragoman.dialects())
def test_a_greeting_goes_into_every_dialect(target: str) -> None:
    """A plain request can be said in any dialect, from a dict or from bytes, without loss."""
    encoded = translate(HELLO, source="openai-chat", target=target, strict=True)
    assert encoded.losses == ()
    again = translate(b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}',
                      source="openai-chat", target=target)  # fmt: skip
    assert again.body == encoded.body
    assert detect(encoded.body, path=encoded.path) == target


def test_a_target_says_what_it_takes() -> None:
    """A `Target` in place of a dialect's name fits the request to that deployment."""
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "x"},
        ],
    }
    nine = Target(dialect="openai-chat", tool_id=r"[a-zA-Z0-9]{9}", tool_id_length=9)
    messages = translate(body, source="openai-chat", target=nine).body["messages"]
    found = messages[1]["tool_calls"][0]["id"]
    assert len(found) == 9
    assert messages[2]["tool_call_id"] == found


def test_strict_raises_where_something_is_lost() -> None:
    """What can't be said is an error, if that is asked for, with the losses on it."""
    body = {**HELLO, "top_k": 1, "messages": [{"role": "user", "name": "Ann", "content": "Hi"}]}
    assert translate(body, source="openai-chat", target="anthropic").losses
    with pytest.raises(LossError) as caught:
        translate(body, source="openai-chat", target="anthropic", strict=True)
    assert caught.value.losses


def test_a_broken_body_is_a_wire_error() -> None:
    """The source's own error says which dialect it was read as."""
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


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (HELLO, "openai-chat"),
        ({"messages": [], "system": "x"}, "anthropic"),
        ({"model": "claude-x", "max_tokens": 1, "messages": []}, "anthropic"),
        ({"input": "hi"}, "openai-responses"),
        ({"prompt": {"id": "p"}}, "openai-responses"),
        ({"contents": []}, "gemini"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]},
            "anthropic",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "openai-chat"),
        (b'{"candidates": []}', "gemini"),
    ],
)
def test_bodies_give_their_dialect_away(body: Any, found: str) -> None:
    """Fields, roles, blocks and tools tell the dialect."""
    assert detect(body) == found


def test_paths_and_headers_decide() -> None:
    """Where a request was sent says more than what is in it."""
    assert detect(HELLO, path="/v1/messages") == "anthropic"
    assert detect(HELLO, headers={"Anthropic-Version": "2023-06-01"}) == "anthropic"
    assert detect({}, path="/v1beta/models/m:generateContent?alt=sse") == "gemini"


@pytest.mark.parametrize("body", [{}, {"model": "m"}, "[]", "3"])
def test_what_nothing_tells_is_asked_for(body: Any) -> None:
    """A body without any sign is an error that asks for the name."""
    with pytest.raises(InvalidInputError, match="name it"):
        detect(body)


@pytest.mark.corpus
@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_recorded_bodies_are_told_apart(corpus: Corpus, dialect: str) -> None:
    """Of recorded bodies, without their paths, not one in a hundred is taken for another's."""
    chosen = list(bodies(corpus, dialect))
    wrong = [body for body in chosen if detect(body.wire) != dialect]
    assert len(wrong) <= len(chosen) / 100
