"""Raw dicts of every dialect: lists of messages, whole requests, and mixtures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import chain
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.wire.dialect import dialect, dialects
from tests.corpus import Corpus
from tests.interop.inputs.talk import DICTS, TALK, body_of, rounds, without_ids
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY
from tests.wire.test_matrix_random import histories

WITHOUT_IDS = ("gemini", "ollama")


def wire_of(name: str) -> list[list[dict[str, Any]]]:
    """The dicts of each message of the conversation, in a dialect, without optional ids."""
    wire = body_of(name)[dialect(name).messages_field]
    pieces, start = [], 0
    for count in DICTS[name]:
        pieces.append(wire[start : start + count])
        start += count
    return [without_ids(piece) for piece in pieces] if name in WITHOUT_IDS else pieces


@pytest.mark.parametrize("name", dialects())
def test_a_list_of_messages_is_read(name: str) -> None:
    """Calls and results are matched; any kind of mapping is accepted."""
    items = body_of(name)[dialect(name).messages_field]
    assert rounds(Messages.from_any(items)) == rounds(TALK)
    assert rounds(Messages.from_any(tuple(map(MappingProxyType, items)))) == rounds(TALK)
    assert rounds(Messages.from_json(json.dumps(items))) == rounds(TALK)


@pytest.mark.parametrize("name", dialects())
def test_a_whole_request_is_read(name: str) -> None:
    """As a dict or as JSON; its instructions become the first message."""
    body = body_of(name, system=(Text("Be brief."),))
    expected = rounds([Message.system("Be brief."), *TALK])
    assert rounds(Messages.from_any(body)) == expected
    assert rounds(Messages.from_any(json.dumps(body).encode())) == expected
    assert rounds(Messages.from_json(json.dumps(body))) == expected


@pytest.mark.parametrize("name", dialects())
@pytest.mark.parametrize("place", range(5))
def test_messages_and_dicts_can_be_mixed(name: str, place: int) -> None:
    """A `Message` anywhere among dicts; results are still matched with their calls."""
    pieces: list[list[Any]] = list(wire_of(name))
    pieces[place] = [TALK[place]]
    assert rounds(Messages.from_any(chain.from_iterable(pieces))) == rounds(TALK)


@given(st.lists(st.sampled_from([*dialects(), "ours"]), min_size=10, max_size=10))
def test_dialects_can_be_mixed(names: list[str]) -> None:
    """Each message may have a dialect of its own; no two calls share an id."""
    items: list[Any] = []
    for place, name in enumerate(names):
        items += _spelled(name, place % len(TALK), place >= len(TALK))
    read = Messages.from_any(items)
    calls = [call.id for message in read for call in message.tool_calls]
    answered = [result.call_id for message in read for result in message.tool_results]
    assert said(read) == said((*TALK, *TALK))
    assert len({*calls}) == 4
    assert answered == calls


def _spelled(name: str, place: int, has_other_ids: bool) -> list[Any]:
    """One message of the conversation in a dialect, or as a `Message`."""
    raw = TALK[place].to_json() if name == "ours" else json.dumps(wire_of(name)[place]).encode()
    for number in (b"1", b"2") if has_other_ids else ():
        raw = raw.replace(b'"call_%s"' % number, b'"later_%s"' % number)
    return [Message.from_json(raw)] if name == "ours" else list(json.loads(raw))


def said(messages: Iterable[Message]) -> list[str]:
    """All texts and calls in order; some dialects have no empty texts."""
    spoken = (
        part.name if isinstance(part, ToolCall) else getattr(part, "text", "")
        for message in messages
        for part in message.parts
    )
    return [text for text in spoken if text]


@pytest.mark.parametrize("name", dialects())
@given(request=histories())
def test_encoded_messages_are_read_like_the_dialect_does(name: str, request: Request) -> None:
    """The dialect is detected from the messages, or it makes no difference."""
    spoken = dialect(name)
    try:
        items = json.loads(spoken.encode_request(request).to_bytes())[spoken.messages_field]
    except DragomanError:
        return  # it can't be encoded there
    if isinstance(items, str):
        return
    read = Messages.from_any(items)
    assert said(read) == said(spoken.decode_request({spoken.messages_field: items}).messages)


@pytest.mark.corpus
@pytest.mark.parametrize("name", dialects())
def test_recorded_requests_are_read(corpus: Corpus, name: str) -> None:
    """Bodies and lists of messages are read without naming the dialect."""
    spoken, count = dialect(name), 0
    for recording in corpus.select(provider_api=SPOKEN_BY[name], status=200):
        body = recording.request_body
        path = recording.request_path.partition("?")[0]
        if not isinstance(body, dict) or not ENDPOINTS[name].search(path):
            continue
        request = spoken.decode_request(body)
        system = [Message.system(*request.system)] if request.system else []
        assert list(Messages.from_any(body)) == [*system, *request.messages], recording
        items = body.get(spoken.messages_field)
        if isinstance(items, list):
            alone = spoken.decode_request({spoken.messages_field: items})
            assert list(Messages.from_any(items)) == [*alone.messages], recording
        count += 1
    assert count > 10
