"""A client sees the same answer whether it is streamed or whole, in every dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import ServerError, WireError
from dragoman.model.events import Event, PartDelta, PartStart, StreamError
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio, Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Refusal, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of
from dragoman.wire.front import Front
from dragoman.wire.losses import Loss
from tests.corpus import Recording
from tests.wire.front_types import request_to
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY

FRONTS = ("openai-chat", "openai-responses", "anthropic", "gemini", "ollama")
_SPOKEN = {api: name for name, apis in SPOKEN_BY.items() for api in apis}
_JOINED = ("text", "thinking", "refusal")


def content_of(choice: Choice, *, apart: bool = True) -> list[tuple[str, Any]]:
    """What a client shows of a choice: neighbouring texts joined, sealed state left out.

    Not `apart`: all texts joined.
    """
    found: list[tuple[str, Any]] = []
    for part in choice.message.parts:
        key = _key(part)
        if key is None or not key[1]:
            continue
        kinds = [kind for kind, _ in found]
        at = len(found) - 1 if apart or key[0] not in kinds else kinds.index(key[0])
        if found and key[0] in _JOINED and found[at][0] == key[0]:
            found[at] = (key[0], found[at][1] + key[1])
        else:
            found.append(key)
    return found


def _returns(choice: Choice, events: Iterable[Event]) -> bool:
    """Whether a stream goes back to an earlier part, as Kimi's do to a text after a call."""
    places = [
        event.index
        for event in events
        if isinstance(event, (PartStart, PartDelta, ToolCallDelta))
        if event.choice == choice.index and event.index is not None
    ]
    return any(later < earlier for earlier, later in pairwise(places))


def servers_of(choice: Choice) -> Counter[str]:
    """The parts of built-in tools, which may come at another place of a stream."""
    return Counter(
        type(part).__name__
        for part in choice.message.parts
        if isinstance(part, (ServerToolCall, ServerToolResult))
    )


def _key(part: Any) -> tuple[str, Any] | None:
    match part:
        case Text():
            return "text", part.text
        case Thinking():
            return "thinking", part.text
        case Refusal():
            return "refusal", part.text
        case ToolCall():
            return ("call", (part.name, _arguments(part)))
        case Image() | Audio():
            return type(part).__name__, part.data or part.url
    return None  # results of built-in tools may come at another place of a stream


def _arguments(call: ToolCall) -> Any:
    """The arguments; of a call that was cut off, only that they are."""
    try:
        return dumps(call.arguments)
    except ValueError:
        return None


def citations_of(choice: Choice) -> Counter[str | None]:
    """The addresses that a choice cites."""
    return Counter(
        cited.url
        for part in choice.message.parts
        if isinstance(part, Text)
        for cited in part.citations
    )


def seen_whole(front: Front, response: Response) -> Response:
    """What a client decodes from a whole answer."""
    return dragoman.dialect(front.dialect.name).decode_response(front.response(response).to_bytes())


def seen_streamed(front: Front, events: Iterable[Event]) -> tuple[Response, list[Loss]]:
    """What a client decodes from a stream of the same answer, and the reported losses."""
    encoder = front.stream()
    decoder = dragoman.dialect(front.dialect.name).stream_decoder()
    for event in events:
        decoder.feed(encoder.feed(event))
    decoder.feed(encoder.close())
    decoder.close()
    return decoder.response, list(encoder.losses)


def check(name: str, response: Response, events: list[Event]) -> None:
    """Both forms give the client the same choices, finish reasons and usage."""
    request = request_to(name)
    if name == "openai-chat":
        extras = {name: {"stream_options": {"include_usage": True}}}
        request = request.replace(stream=True, extras=extras)
    whole = seen_whole(Front(name, request), response)
    stream, losses = seen_streamed(Front(name, request), events)
    assert len(stream.choices) == len(whole.choices)
    for told, one, other in zip(response.choices, stream.choices, whole.choices, strict=False):
        if _returns(told, events):
            assert sorted(content_of(one, apart=False)) == sorted(content_of(other, apart=False))
        else:
            assert content_of(one) == content_of(other)
        assert told.finish is None or one.finish == other.finish
        if not any("citation" in f"{loss.path} {loss.reason}" for loss in losses):
            assert citations_of(one) == citations_of(other)
        assert servers_of(one) == servers_of(other)
    if whole.usage is not None or stream.usage is not None:
        assert _counts(stream, response) == _counts(whole, response)


def _counts(seen: Response, told: Response) -> Usage | None:
    """The usage; without a total that nobody told, which a whole answer's client must get."""
    is_told = told.usage is None or told.usage.reported_total is not None
    return seen.usage if seen.usage is None or is_told else seen.usage.replace(reported_total=None)


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.thorough
@pytest.mark.corpus(status=200, provider_api=tuple(_SPOKEN))
def test_recorded_answers(front: str, recording: Recording) -> None:
    """Recorded answers: whole ones streamed, streams as they were and joined."""
    name = _SPOKEN[recording.row.provider_api]
    if not ENDPOINTS[name].search(recording.request_path.partition("?")[0]):
        pytest.skip("another endpoint's answer")
    speaker = dragoman.dialect(name)
    raw = recording.response_stream
    if raw is None:
        answer = recording.response_body
        if not isinstance(answer, dict) or answer.get("error"):
            pytest.skip("no answer")
        response = speaker.decode_response(answer)
        if not response.choices or _is_cut_off(response):
            pytest.skip("no complete answer")
        check(front, response, list(events_of(response)))
        return
    decoder = speaker.stream_decoder()
    try:
        events = [*decoder.feed(raw), *decoder.close()]
    except WireError:
        pytest.skip("the recording is broken")
    if _contradicts_itself(decoder.response, events):
        pytest.skip("the recording was shortened by hand: its pieces are not its whole")
    if decoder.response.choices and decoder.is_complete and not _is_cut_off(decoder.response):
        check(front, decoder.response, events)


def _contradicts_itself(response: Response, events: list[Event]) -> bool:
    """Whether the pieces of its texts are others than the texts in whole items."""
    sent = Counter[int]()
    for event in events:
        if isinstance(event, PartStart) and isinstance(event.part, Text):
            sent[event.choice] += len(event.part.text)
        elif isinstance(event, PartDelta) and event.text and _is_of_text(event, events):
            sent[event.choice] += len(event.text)
    return any(len(each.message.text) > sent[each.index] > 0 for each in response.choices)


def _is_of_text(delta: PartDelta, events: list[Event]) -> bool:
    place = delta.choice, delta.index
    return any(
        isinstance(event, PartStart)
        and (event.choice, event.index) == place
        and isinstance(event.part, Text)
        for event in events
    )


def _is_cut_off(response: Response) -> bool:
    """Whether a call's arguments end early: in a stream, their beginning was sent already."""
    calls = [part for each in response.choices for part in each.message.tool_calls]
    return any(_arguments(call) is None for call in calls)


def test_a_call_beside_an_empty_one_of_the_other_kind() -> None:
    """Snowflake's calls have `function` and an empty `custom`: the type tells which one counts."""
    call = {"id": "c1", "type": "function", "index": 0, "custom": {"name": "", "input": ""},
            "function": {"name": "weather", "arguments": '{"a":1}'}}  # fmt: skip
    delta = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "stop"}]}
    decoder = dragoman.dialect("openai-chat").stream_decoder()
    decoder.feed(b"data: " + dumps(delta) + b"\n\ndata: [DONE]\n\n")
    decoder.close()
    [found] = decoder.response.message.tool_calls
    assert (found.kind, found.name, found.arguments) == ("function", "weather", {"a": 1})


def test_an_answer_without_a_finish_reason_is_complete() -> None:
    """A whole answer of a provider that tells none is no incomplete stream."""
    message = Message.assistant(ToolCall.create("c1", "weather", {}))
    response = Response(choices=(Choice(0, message),))
    seen, _ = seen_streamed(
        Front("openai-responses", request_to("openai-responses")), events_of(response)
    )
    assert seen.choices[0].finish is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("home", [None, *FRONTS])
@pytest.mark.parametrize("name", FRONTS)
def test_an_answer_with_two_audios(name: str, home: str | None) -> None:
    """Both forms have the same ones, and both report what is left out."""
    origin = None if home is None else Origin(dialect=home)
    made = [
        Audio(data=data, transcript=data, item_id=f"audio_{data}", mime=mime, origin=origin)
        for data in ("AAAA", "BBBB")
        for mime in ([None] if home == "openai-chat" else ["audio/wav"])
    ]
    message = Message(Role.ASSISTANT, (Text("Hear:"), *made), origin=origin)
    response = Response(choices=(Choice(0, message, FinishReason.STOP),))
    check(name, response, list(events_of(response)))
    whole = Front(name, request_to(name)).response(response)
    _, streamed = seen_streamed(Front(name, request_to(name)), events_of(response))
    for at, audio in enumerate(made, 1):
        path = f"choices[0].message.parts[{at}]"
        is_sent = str(audio.data) in whole.to_bytes().decode()
        for losses in (whole.losses, streamed):
            assert is_sent or any(loss.path == path for loss in losses)


_words = st.text('ab é\n\u2028<{"\\', max_size=12)
_places = st.sampled_from(FRONTS).map(lambda name: Origin(dialect=name))
_homes = st.none() | _places
_seals = st.none() | st.just("c2ln")
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | _words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_words, inner, max_size=2),
    max_leaves=4,
)
_parts = st.one_of(
    st.builds(Text, _words, origin=_homes),
    st.builds(Thinking, _words, signature=_seals, origin=_places),
    st.builds(Refusal, _words),
    st.builds(
        ToolCall.create, st.uuids().map(str), st.sampled_from(["f", "g_2", "weather"]),
        st.dictionaries(_words, _values, max_size=3),
    ),
    st.builds(Image, data=st.just("iVBORw0KGgo="), mime=st.just("image/png"), origin=_homes),
    st.builds(Image, url=st.just("https://example.org/a.png"), origin=_homes),
)  # fmt: skip
_finishes = st.sampled_from([FinishReason.STOP, FinishReason.LENGTH, FinishReason.TOOL_CALLS])


@pytest.mark.parametrize("front", FRONTS)
@given(parts=st.lists(_parts, min_size=1, max_size=5), finish=_finishes, home=_homes)
def test_generated_answers(
    front: str, parts: list[Any], finish: FinishReason, home: Origin | None
) -> None:
    """Generated answers: texts, thinking, refusals, calls and images in any order."""
    message = Message(Role.ASSISTANT, tuple(parts), origin=home)
    response = Response(choices=(Choice(0, message, finish),), usage=Usage(input=7, output=3))
    check(front, response, list(events_of(response)))


@pytest.mark.parametrize("front", FRONTS)
def test_a_failed_answer_is_an_error_in_both_forms(front: str) -> None:
    """A whole one is nothing else, except in the Responses API, which has a status for it.

    In a stream, what was said before has been sent: the error follows it.
    """
    message = Message.assistant("Hello")
    response = Response(choices=(Choice(0, message, FinishReason.ERROR),))
    made = Front(front, request_to(front))
    encoder, decoder = made.stream(), dragoman.dialect(front).stream_decoder()
    frames = b"".join([*map(encoder.feed, events_of(response)), encoder.close()])
    seen = [*decoder.feed(frames), *decoder.close()]
    assert decoder.response.text == "Hello"
    if front == "openai-responses":
        whole = seen_whole(made, response)
        assert whole.text == "Hello"
        assert whole.finish is decoder.response.finish is FinishReason.ERROR
    else:
        with pytest.raises(ServerError, match="failed"):
            seen_whole(made, response)
        assert any(isinstance(event, StreamError) for event in seen)
