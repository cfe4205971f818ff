"""Recorded histories of any dialect, torn anywhere: what goes out is valid, and words stay."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Request, Role, Text
from dragoman.wire.gemini import DIALECT
from dragoman.wire.target import Target
from tests.corpus import Corpus
from tests.wire.gemini.targets import TARGETS
from tests.wire.recorded import bodies

pytestmark = pytest.mark.corpus


@cache
def _requests(corpus: Corpus) -> list[Request]:
    """The recorded requests that have a history: the longest of them tear best."""
    decoded = [
        body.decode()
        for dialect in dragoman.dialects()
        for body in bodies(corpus, dialect)
        if body.kind == "request"
    ]
    return [one for one in decoded if isinstance(one, Request) and len(one.messages) > 1]


def _torn(data: st.DataObject, request: Request) -> Request:
    messages = list(request.messages)
    for _ in range(data.draw(st.integers(1, 3))):
        if not messages:
            break
        place = data.draw(st.integers(0, len(messages) - 1))
        how = data.draw(st.sampled_from(["head", "tail", "message", "part", "part"]))
        if how == "head":
            del messages[:place]
        elif how == "tail":
            del messages[place + 1 :]
        elif how == "message":
            del messages[place]
        else:
            messages[place] = _without_a_part(data, messages[place])
    return request.replace(messages=tuple(messages))


def _without_a_part(data: st.DataObject, message: Message) -> Message:
    if not message.parts:
        return message
    place = data.draw(st.integers(0, len(message.parts) - 1))
    return message.replace_unchecked(parts=(*message.parts[:place], *message.parts[place + 1 :]))


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
@given(data=st.data())
def test_whatever_is_missing(corpus: Corpus, target: Target, data: st.DataObject) -> None:
    """A history without some of its messages and parts is accepted, and says what users said."""
    found = _requests(corpus)
    request = _torn(data, data.draw(st.sampled_from(found)))
    encoded = DIALECT.encode_request(request, target)
    if request.messages or request.system:
        violations = DIALECT.check(encoded.body, target=target)
        assert [one for one in violations if one.severity == "error"] == []
    heard = _texts(encoded.body)
    for message in request.messages:
        if message.role is Role.USER:
            assert all(part.text in heard for part in message.parts if isinstance(part, Text))
    assert DIALECT.encode_request(request, target).to_bytes() == encoded.to_bytes()
