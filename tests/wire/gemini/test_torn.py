"""Recorded histories of any dialect with random edits give valid requests with all user text."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Request, Role, Text
from dragoman.wire.gemini.codec import DIALECT
from dragoman.wire.target import Target
from tests.corpus import Corpus
from tests.wire.gemini.targets import TARGETS
from tests.wire.recorded import bodies, has_conversation

pytestmark = pytest.mark.corpus


@cache
def _requests(corpus: Corpus) -> list[Request]:
    """The recorded requests with more than one message."""
    decoded = [
        body.decode()
        for dialect in dragoman.dialects()
        for body in bodies(corpus, dialect)
        if body.kind == "request"
    ]
    return [one for one in decoded if isinstance(one, Request) and len(one.messages) > 1]


TEARS = st.lists(
    st.tuples(
        st.sampled_from(["head", "tail", "message", "part", "part"]),
        st.integers(0, 999),
        st.integers(0, 999),
    ),
    min_size=1,
    max_size=3,
)
"""How to tear, and where: numbers that stand for a place, however many there are."""


def _torn(request: Request, tears: list[tuple[str, int, int]]) -> Request:
    messages = list(request.messages)
    for how, number, inner in tears:
        if not messages:
            break
        place = number % len(messages)
        if how == "head":
            del messages[:place]
        elif how == "tail":
            del messages[place + 1 :]
        elif how == "message":
            del messages[place]
        else:
            messages[place] = _without_a_part(messages[place], inner)
    return request.replace(messages=tuple(messages))


def _without_a_part(message: Message, number: int) -> Message:
    if not message.parts:
        return message
    place = number % len(message.parts)
    parts = (*message.parts[:place], *message.parts[place + 1 :])
    return message.replace_unchecked(parts=parts, origin=None)  # edited, so without its origin


def _texts(body: dict[str, Any]) -> str:
    contents = body.get("contents", ())
    listed = [contents] if isinstance(contents, dict) else contents
    parts: list[Any] = []
    for content in listed:
        inner = content.get("parts", ())
        parts += [inner] if isinstance(inner, dict) else inner
    return "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))


@pytest.mark.parametrize("target", TARGETS.values(), ids=list(TARGETS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(0, 9999), tears=TEARS)
def test_edited_history_is_sent_as_a_valid_request(
    corpus: Corpus, target: Target, number: int, tears: list[tuple[str, int, int]]
) -> None:
    """A history without some messages and parts gives a valid request with all user text."""
    found = _requests(corpus)
    request = _torn(found[number % len(found)], tears)
    if not has_conversation(request, DIALECT.name, target):
        return
    encoded = DIALECT.encode_request(request, target)
    if request.messages:
        violations = DIALECT.check(encoded.body, target=target)
        assert [one for one in violations if one.severity == "error"] == []
    heard = _texts(encoded.body)
    for message in request.messages:
        if message.role is Role.USER:
            assert all(part.text in heard for part in message.parts if isinstance(part, Text))
    assert DIALECT.encode_request(request, target).to_bytes() == encoded.to_bytes()
