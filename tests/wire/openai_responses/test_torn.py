"""Recorded histories with random edits are encoded as valid OpenAI requests."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Request, Role, Text, Thinking
from dragoman.model.requests import State
from dragoman.wire.openai_responses.codec import DIALECT
from tests.corpus import Corpus
from tests.wire.recorded import bodies

pytestmark = [pytest.mark.corpus, pytest.mark.usefixtures("corpus")]


@cache
def _histories(source: str) -> list[Request]:
    """Recorded requests with more than one message, and recorded answers with a follow-up."""
    corpus = Corpus.open()
    found: list[Request] = []
    answers: dict[str, Message] = {}
    for body in bodies(corpus, source, "core"):
        value: Any = body.decode()
        if body.kind == "request" and len(value.messages) > 1:
            found.append(value)
        elif body.kind == "response" and value.choices and value.message.parts:
            answers.setdefault(body.recording.row.file, value.message)
    # An answer and the next user message.
    found += [Request(messages=(m, Message.user("And then?"))) for m in answers.values()]
    return found


def _has_thought(request: Request) -> bool:
    return any(isinstance(part, Thinking) for m in request.messages for part in m.parts)


@st.composite
def _torn(draw: st.DrawFn, source: str) -> Request:
    histories = _histories(source)
    if draw(st.booleans()):  # reasoning is the most fragile
        histories = list(filter(_has_thought, histories)) or histories
    request = draw(st.sampled_from(histories))
    messages = list(request.messages)
    start = draw(st.integers(0, len(messages)))
    end = draw(st.integers(start, len(messages)))
    if draw(st.booleans()):
        messages = messages[start:end]
    for _ in range(draw(st.integers(0, 3))):
        if not messages:
            break
        place = draw(st.integers(0, len(messages) - 1))
        parts = list(messages[place].parts)
        match draw(st.sampled_from(["message", "part", "twice", "swap"])):
            case "message":
                del messages[place]
            case "part" if parts:
                del parts[draw(st.integers(0, len(parts) - 1))]
                messages[place] = messages[place].replace_unchecked(parts=tuple(parts))
            case "twice":
                messages.insert(place, messages[place])
            case _:
                messages.insert(draw(st.integers(0, len(messages) - 1)), messages.pop(place))
    state = draw(st.sampled_from([
        None, State(store=False), State(store=True), State(previous_response_id="resp_1"),
        State(conversation="conv_1", store=False),
    ]))  # fmt: skip
    return Request(model="m", messages=(*messages, Message.user("Go on.")), state=state)


def _errors(body: Any) -> list[Any]:
    return [found for found in DIALECT.check(body) if found.severity == "error"]


@pytest.mark.parametrize("source", dragoman.dialects())
@given(data=st.data())
def test_edited_history_is_sent_as_a_valid_request(source: str, data: st.DataObject) -> None:
    """Removed, repeated or reordered messages and parts don't lead to rule violations."""
    encoded = DIALECT.encode_request(data.draw(_torn(source)), DIALECT.target)
    assert _errors(encoded.body) == []


@pytest.mark.parametrize("source", dragoman.dialects())
@given(data=st.data())
def test_user_text_is_never_lost(source: str, data: st.DataObject) -> None:
    """Whatever is edited, all user text is sent."""
    request = data.draw(_torn(source))
    arrived = DIALECT.decode_request(DIALECT.encode_request(request).to_bytes())
    heard = "\n".join(_words(arrived))
    assert all(text in heard for text in _words(request))


def _words(request: Request) -> list[str]:
    return [
        part.text
        for message in request.messages
        for part in message.parts
        if isinstance(part, Text) and message.role is Role.USER
    ]
