"""Every recorded response with opaque state, through every front and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import dragoman
from dragoman.errors import WireError
from dragoman.model.events import Event
from dragoman.model.messages import Message
from dragoman.model.parts import Opaque, Refusal, ServerToolCall, ServerToolResult, Thinking
from dragoman.model.responses import Response
from tests.corpus import Corpus
from tests.wire.clients import FRONTS, needed, returned, returned_stream, seals, sent
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY
from tests.wire.test_fronts import direct

pytestmark = pytest.mark.corpus

_CHANGED = frozenset({
    # The final event differs from the deltas: the text was truncated by hand,
    "openai_responses/ai____fixtures__-openai-shell-container.1.json",
    # and an item has another id.
    (
        "openai_responses/pydantic-ai__test_openai_responses-test_openai_responses_model_"
        "mcp_list_tools_stream_backfills_missing___00.json"
    ),
})  # fmt: skip
_LEAST = {"anthropic": 50, "gemini": 25, "openai-chat": 50, "openai-responses": 120}
_WHOLE = (Thinking, ServerToolCall, ServerToolResult, Opaque)


def _answers(corpus: Corpus, home: str) -> Iterator[tuple[str, Response, list[Event]]]:
    """Answers with state, and the events of the streamed ones."""
    full: Any = dragoman.dialect(home)
    for recording in corpus.select(provider_api=SPOKEN_BY[home], status=200):
        if not ENDPOINTS[home].search(recording.request_path.partition("?")[0]):
            continue
        stream, body = recording.response_stream, recording.response_body
        events: list[Event] = []
        if stream is not None:
            decoder = full.stream_decoder()
            with suppress(WireError):  # one of them is broken
                events = decoder.feed(stream) + decoder.close()
            response = decoder.response
            if not decoder.is_complete:
                continue
        elif isinstance(body, dict) and not body.get("error"):
            response = full.decode_response(body)
        else:
            continue
        if len(response.choices) == 1 and _has_state(response.message):
            yield recording.row.file, response, events


def _has_state(message: Message) -> bool:
    """Whether there is state to return; refusals and cut-off calls are not always sent back."""
    is_cut_off = message.finish is not None and message.finish.is_cut_off
    if is_cut_off and message.tool_calls:
        return False
    return not any(isinstance(part, Refusal) for part in message.parts) and any(
        part.signature or part.item_id or isinstance(part, _WHOLE) for part in message.parts
    )


@pytest.mark.thorough
@pytest.mark.parametrize("home", FRONTS)
def test_recorded_state_round_trips(corpus: Corpus, home: str) -> None:
    """State returns to its positions, plain and streamed, and the request passes `check`."""
    count = 0
    for file, response, events in _answers(corpus, home):
        count += 1
        wanted = seals(home, needed(sent(home, direct(response)).body))
        for front in FRONTS:
            if front == home:
                continue
            back = seals(home, needed(sent(home, returned(front, response)).body))
            assert back == wanted, (file, front)
            if events and file not in _CHANGED:
                back = seals(home, needed(sent(home, returned_stream(front, events)).body))
                assert _named(back) == _named(wanted), (file, front)
    assert count >= _LEAST[home]


def _named(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Responses re-encrypts the content in its last stream event; either is valid."""
    return [(key, "" if key == "encrypted_content" else value) for key, value in found]
