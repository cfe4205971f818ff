"""Anything that stored conversations and users may contain can be sent in every dialect."""

from __future__ import annotations

import pytest

import dragoman
from dragoman import Messages, Opaque, Request

NAMELESS = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "123"}]},
    {"role": "tool", "tool_call_id": "123", "content": "result"},
    {"role": "user", "content": "And?"},
]


@pytest.mark.parametrize("name", dragoman.dialects())
def test_a_call_without_a_name_can_be_sent(name: str) -> None:
    """Seed 001's test data is decoded, kept, and encoded in a form that the target accepts."""
    messages = Messages.from_any(NAMELESS)
    assert [message.kind for message in messages] == ["user", "tool_call", "tool_result", "user"]
    assert Messages.from_json(messages.to_json()) == messages
    dialect = dragoman.dialect(name)
    encoded = dialect.encode_request(Request(model="m", messages=tuple(messages)))
    assert not encoded.losses
    assert [found for found in dialect.check(encoded.body) if found.severity == "error"] == []
    assert "123" in str(encoded.body)


@pytest.mark.parametrize("name", dragoman.dialects())
@pytest.mark.parametrize("kind", ["custom", "hologram"])
def test_a_custom_part_is_a_loss(name: str, kind: str) -> None:
    """Unknown kinds of parts are losses in every dialect; the rest of the message is sent."""
    messages = Messages.from_any([["Look:", Opaque.custom(kind, {"secret": 1})]])
    again = Messages.from_any(messages.to_list())
    assert again == Messages.from_json(messages.to_json()) == messages
    encoded = dragoman.dialect(name).encode_request(Request(model="m", messages=tuple(again)))
    assert len(encoded.losses) == 1
    assert "Look:" in str(encoded.body)
    assert "secret" not in str(encoded.body)
