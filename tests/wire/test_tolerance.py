"""Decoding is tolerant: a body of a known dialect is decoded, however unusual.

Values that the model can't represent are kept, so that the body round-trips; for another dialect
they are a `Loss`; and an edit overrides them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Loss, Message, Repair, Request, Role, Text
from dragoman.errors import (
    AuthenticationError,
    ContextTooLong,
    DragomanError,
    ModelNotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    RateLimited,
    ServerError,
    WireError,
)
from dragoman.model.requests import Sampling
from dragoman.wire.encoded import Encoded
from tests.corpus import Corpus
from tests.wire.odd_bodies import (
    GEMINI_PATH,
    ODD,
    RICH,
    STREAMS,
    UNREADABLE,
    Kind,
    Odd,
    came_back,
    framed,
    odd_bodies,
    odd_streams,
    places,
    put,
    valid_bodies,
)
from tests.wire.recorded import bodies, normal
from tests.wire.streamed import read, written

pytestmark = pytest.mark.whole

DIALECTS = dragoman.dialects()
KINDS: tuple[Kind, ...] = ("request", "response")
sampled = pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
"""Of what is slow, one of so many is tried, or everything."""
TARGETS = (
    "openai:gpt-4o",
    "groq:llama-3.3-70b-versatile",
    "mistral:mistral-large-latest",
    "anthropic:claude-sonnet-4-5",
    "google:gemini-2.5-pro",
    "deepseek:deepseek-chat",
)
SAID = "zqx-said"
"""A text that stands nowhere else."""


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_bodies_round_trip(dialect: str, kind: Kind, step: int) -> None:
    """Each odd value at each place of a rich body is decoded, and encoded unchanged."""
    count = 0
    for odd in islice(odd_bodies(dialect, kind, tuple(RICH[dialect, kind])), 0, None, step):
        assert normal(came_back(odd)) == normal(odd.body), str(odd)
        count += 1
    assert count


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_fixtures_round_trip(dialect: str, kind: Kind) -> None:
    """The same for all of our own fixtures."""
    for odd in odd_bodies(dialect, kind):
        assert normal(came_back(odd)) == normal(odd.body), str(odd)


@pytest.mark.parametrize(
    ("count", "each"), [(20, 10), pytest.param(400, 50, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_recordings_round_trip(corpus: Corpus, dialect: str, count: int, each: int) -> None:
    """Real bodies, each with odd values at some of its places."""
    chosen = Random(dialect)
    small = [body for body in bodies(corpus, dialect) if body.recording.row.size < 20_000]
    for body in chosen.sample(small, min(count, len(small))):
        open_places = [p for p in places(body.wire) if p != (UNREADABLE[dialect, body.kind],)]
        for path in chosen.choices(open_places, k=each):
            wire = put(body.wire, path, chosen.choice(ODD))
            odd = Odd(dialect, body.kind, path, wire)
            assert normal(came_back(odd)) == normal(wire), (body.recording.row.file, path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_several_odd_values_round_trip(dialect: str, kind: Kind, data: st.DataObject) -> None:
    """Any combination of odd values at any places."""
    body: Any = data.draw(st.sampled_from(valid_bodies(dialect, kind)))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(body))))
        if path != (UNREADABLE[dialect, kind],):
            body = put(body, path, data.draw(st.sampled_from(ODD)))
    assert normal(came_back(Odd(dialect, kind, (), body))) == normal(body)


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_requests_survive_being_stored(dialect: str) -> None:
    """Odd values survive being stored in a canonical document."""
    speaker = dragoman.dialect(dialect)
    for odd in islice(odd_bodies(dialect, "request", (RICH[dialect, "request"][0],)), 0, None, 5):
        request = speaker.decode_request(odd.body, path=GEMINI_PATH)
        stored = Request.from_json(request.to_json())
        assert stored == request
        assert normal(json.loads(speaker.encode_request(stored).to_bytes())) == normal(odd.body)


@pytest.mark.parametrize("source", DIALECTS)
@given(data=st.data())
def test_several_odd_values_can_be_translated(source: str, data: st.DataObject) -> None:
    """For any target, repaired or not, there is a body, or one of our errors."""
    body: Any = data.draw(st.sampled_from(valid_bodies(source, "request")))
    for _ in range(data.draw(st.integers(1, 4))):
        if found := list(places(body)):
            path = data.draw(st.sampled_from(found))
            body = put(body, path, data.draw(st.sampled_from(ODD)))
    target = data.draw(st.sampled_from((*DIALECTS, *TARGETS)))
    dragoman.dialect(source).check(body)
    with suppress(DragomanError):
        repair = data.draw(st.booleans())
        encoded = dragoman.translate(
            body, source=source, target=target, path=GEMINI_PATH, repair=repair
        )
        assert encoded.to_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"5", b"null"])
def test_other_input_is_a_wire_error(dialect: str, kind: Kind, body: bytes) -> None:
    """Input that is no JSON, or no object, is a `WireError`."""
    speaker = dragoman.dialect(dialect)
    read: Callable[[bytes], object] = (
        speaker.decode_request if kind == "request" else speaker.decode_response
    )
    with pytest.raises(WireError) as caught:
        read(body)
    assert caught.value.dialect == dialect


@pytest.mark.parametrize("value", [5, True, {"odd": 1}])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_that_are_no_list_are_a_wire_error(dialect: str, value: Any) -> None:
    """The error names the field."""
    field = UNREADABLE[dialect, "request"]
    if (dialect, value) == ("gemini", {"odd": 1}):
        value = "odd"  # the API accepts a content without a list
    with pytest.raises(WireError) as caught:
        dragoman.dialect(dialect).decode_request({field: value})
    assert caught.value.path == f"$.{field}"


# --- other dialects


def _report(encoded: Encoded) -> set[tuple[str, str]]:
    notes: list[Loss | Repair] = [*encoded.losses, *encoded.repairs]
    return {(note.path, note.reason) for note in notes}


def _errors(target: str, encoded: Encoded) -> set[str]:
    body = json.loads(encoded.to_bytes())
    found = dragoman.dialect(target).check(body, encoded.path)
    return {violation.rule for violation in found if violation.severity == "error"}


@pytest.mark.thorough
@sampled
@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_odd_bodies_are_valid_or_refused_in_other_dialects(
    source: str, target: str, step: int
) -> None:
    """A translation passes the target's `check`, or raises one of our errors."""
    values: tuple[Any, ...] = (None, True, "", "odd", [], {}, ["odd", None], {"odd": 1})
    odd = [
        (path, put(body, path, value))
        for body in RICH[source, "request"]
        for path in places(body)
        for value in values
        if path[-1] not in (UNREADABLE[source, "request"], "model")  # any text is a name
    ]
    for path, body in odd[::step] if source != target else ():
        try:
            encoded = dragoman.translate(body, source=source, target=target, path=GEMINI_PATH)
        except DragomanError:
            continue
        assert not _errors(target, encoded), path


MESSAGES: dict[str, Callable[[Any], dict[str, Any]]] = {
    "openai-chat": lambda message: {"model": "m", "messages": [{"role": "user", "content": "x"},
                                                               message]},
    "openai-responses": lambda message: {"model": "m", "input": [{"role": "user", "content": "x"},
                                                                 message]},
    "anthropic": lambda message: {"model": "m", "max_tokens": 5, "messages": [
        {"role": "user", "content": "x"}, message]},
    "gemini": lambda message: {"contents": [{"role": "user", "parts": [{"text": "x"}]}, message]},
    "ollama": lambda message: {"model": "m", "stream": False, "messages": [
        {"role": "user", "content": "x"}, message]},
}  # fmt: skip


def _odd_messages(dialect: str) -> list[Any]:
    """Messages with an odd role or content, all with the same text."""
    if dialect == "gemini":
        parts = [{"text": SAID}]
        return [SAID, {"parts": SAID},
                {"role": "user", "parts": [SAID]}, {"role": "observation", "parts": parts},
                {"role": 5, "parts": parts}]  # fmt: skip
    said = [
        SAID,
        {"role": "user", "content": {"odd": SAID}},
        {"role": "user", "content": {"type": "text", "text": SAID}},
        {"role": "user", "content": [SAID]},
        {"role": "control", "content": SAID},
        {"role": "observation", "content": SAID},
        {"role": 5, "content": SAID},
        {"role": None, "content": SAID},
        {"content": SAID},
    ]
    return said if dialect != "ollama" else [*said, {"role": "user", "content": [{"odd": SAID}]}]


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_odd_messages_are_sent_or_reported(source: str, target: str) -> None:
    """Odd fields are reported in other dialects, and readable text is sent."""
    for message in _odd_messages(source):
        body = MESSAGES[source](message)
        encoded = dragoman.translate(body, source=source, target=target)
        if source == target:
            assert json.loads(encoded.to_bytes()) == body
            assert _report(encoded) == set()
            continue
        assert any(path.startswith("messages[1]") for path, _ in _report(encoded)), message
        assert SAID in encoded.to_bytes().decode(), message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_edits_override_odd_values(dialect: str) -> None:
    """The new text or role is sent; other values are unchanged."""
    speaker = dragoman.dialect(dialect)
    for odd in _odd_messages(dialect):
        request = speaker.decode_request(MESSAGES[dialect](odd))
        said = request.messages[1]
        edited = said.replace(parts=(Text("other"),))
        sent = speaker.encode_request(request.replace(messages=(request.messages[0], edited)))
        text = sent.to_bytes().decode()
        assert "other" in text, odd
        assert SAID not in text, odd
        if isinstance(odd, dict) and "role" in odd:
            after = sent.body[speaker.messages_field][1]
            assert after["role"] == odd["role"]
            answer = said.replace(role=Role.ASSISTANT)
            sent = speaker.encode_request(
                request.replace(messages=(request.messages[0], answer)), repair=False
            )
            after = sent.body[speaker.messages_field][1]
            assert after["role"] == ("model" if dialect == "gemini" else "assistant")


SETTINGS: dict[str, tuple[str, ...]] = {
    "openai-chat": ("max_tokens", "temperature", "stop", "stream", "response_format", "model"),
    "openai-responses": ("max_output_tokens", "temperature", "stream", "text", "model"),
    "anthropic": ("max_tokens", "temperature", "stop_sequences", "stream", "system", "model"),
    "gemini": ("generationConfig", "systemInstruction"),
    "ollama": ("options", "stream", "format", "model"),
}
"""The fields in which a dialect has what the edits below are about."""


@pytest.mark.parametrize("value", ["hot", 5, {"odd": 1}, [5], True, None], ids=repr)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_edits_override_odd_settings(dialect: str, value: Any) -> None:
    """A setting that was set after decoding is sent instead of the odd value."""
    speaker = dragoman.dialect(dialect)
    user = _odd_messages(dialect)[-1] if dialect == "gemini" else {"role": "user", "content": "x"}
    for field in SETTINGS[dialect]:
        request = speaker.decode_request({**MESSAGES[dialect](user), field: value})
        changed = request.replace(
            sampling=Sampling(temperature=0.25, max_tokens=77), system=(Text("Be brief."),)
        )
        sent = speaker.encode_request(changed, repair=False)
        after = speaker.decode_request(json.loads(sent.to_bytes()), path=sent.path)
        assert (after.sampling.temperature, after.sampling.max_tokens) == (0.25, 77), field
        assert "Be brief." in sent.to_bytes().decode(), field


TOOLS: tuple[Any, ...] = (5, "odd", None, [], {"odd": SAID}, {"type": 5, "name": "f"}, [SAID])


@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_an_odd_tool_is_kept_in_its_own_dialect(source: str, target: str) -> None:
    """It round-trips beside valid tools, and is a loss in other dialects."""
    for tool in TOOLS:
        body = RICH[source, "request"][0]
        body = {**body, "tools": [*body["tools"], tool]}
        encoded = dragoman.translate(body, source=source, target=target, path=GEMINI_PATH)
        if source == target:
            assert normal(json.loads(encoded.to_bytes())) == normal(body)
        else:
            number = len(dragoman.dialect(source).decode_request(body, path=GEMINI_PATH).tools) - 1
            assert any(path.startswith(f"tools[{number}]") for path, _ in _report(encoded)), tool


def test_an_object_as_content_becomes_text() -> None:
    """Cloudflare's JSON mode answers with an object: its JSON is the text."""
    wire = {"choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": {"a": [1]}}}]}  # fmt: skip
    speaker = dragoman.dialect("openai-chat")
    response = speaker.decode_response(wire)
    assert response.message.text == '{"a":[1]}'
    assert json.loads(speaker.encode_response(response).to_bytes()) == wire


def test_extras_may_hold_any_json() -> None:
    """Extras of a message that decoding makes can also be set by hand."""
    message = Message.user("x").replace(extras={"openai-chat shape": [[["content"], "x", 5]]})
    assert message.with_extra("a", [1]).extras["canonical"] == {"a": [1]}
    body = dragoman.dialect("openai-chat").encode_request(
        Request(messages=(message,)), repair=False
    )
    assert body.body["messages"] == [{"role": "user", "content": 5}]


# --- streams


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_streams_are_decoded(dialect: str) -> None:
    """An odd value at any place of a chunk raises nothing, and readable content arrives."""
    whole = len(read(dialect, framed(dialect, STREAMS[dialect])).response.message.parts)
    kept = 0
    count = 0
    for path, chunks in odd_streams(dialect):
        response = read(dialect, framed(dialect, chunks)).response
        parts = response.choices[0].message.parts if response.choices else ()
        kept += len(parts) >= whole - 1
        count += 1
        assert dragoman.dialect(dialect).encode_response(response).body, path
    assert kept / count > 0.9  # an odd value affects only its own part


@pytest.mark.thorough
@sampled
@pytest.mark.parametrize("target", DIALECTS)
@pytest.mark.parametrize("source", DIALECTS)
def test_odd_streams_can_be_translated(source: str, target: str, step: int) -> None:
    """The events of an odd stream can be encoded and decoded again."""
    for path, chunks in islice(odd_streams(source), 0, None, step):
        decoder = dragoman.dialect(source).stream_decoder()
        events = [*decoder.feed(framed(source, chunks)), *decoder.close()]
        stream, _ = written(target, events)
        assert read(target, stream).response is not None, path


def test_an_object_as_streamed_content_becomes_text() -> None:
    """As in a plain answer, its JSON is the text."""
    chunks = [{"choices": [{"index": 0, "delta": {"content": {"a": 1}}}]},
              {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]  # fmt: skip
    assert read("openai-chat", framed("openai-chat", chunks)).response.message.text == '{"a":1}'
    lines = [{"message": {"role": "assistant", "content": {"a": 1}}, "done": True}]
    assert read("ollama", framed("ollama", lines)).response.message.text == '{"a":1}'


# --- errors with status 200

ANSWERS: dict[str, dict[str, Any]] = {
    "openai-chat": {"choices": []},
    "openai-responses": {"output": []},
    "anthropic": {"content": []},
    "gemini": {"candidates": []},
    "ollama": {"message": {}},
}
ERRORS: list[tuple[Any, type[ProviderError]]] = [
    ({"error": {"message": "slow down", "code": 429}}, RateLimited),
    ({"error": {"message": "slow down", "type": "rate_limit_error"}}, RateLimited),
    ({"error": "model 'x' not found"}, ModelNotFound),
    ({"error": "something broke"}, ServerError),
    ({"error": {}, "type": "error"}, ServerError),
    ({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, Overloaded),
    ({"error": {"code": 503, "message": "x", "status": "UNAVAILABLE"}}, Overloaded),
    ([{"error": {"code": 403, "message": "x", "status": "PERMISSION_DENIED"}}], PermissionDenied),
    ({"object": "error", "message": "This model's maximum context length is 5 tokens", "code": 400},
     ContextTooLong),
    ({"error": {"code": 401, "message": "no"}, "user_id": "u"}, AuthenticationError),
]  # fmt: skip


@pytest.mark.parametrize(("body", "kind"), ERRORS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_error_body_is_a_provider_error(
    dialect: str, body: Any, kind: type[ProviderError]
) -> None:
    """Whatever its shape and status, it is classified as by `decode_error`."""
    speaker = dragoman.dialect(dialect)
    with pytest.raises(ProviderError) as caught:
        speaker.decode_response(json.dumps(body))
    expected = speaker.decode_error(None, body)
    assert type(caught.value) is type(expected) is kind
    assert (caught.value.code, caught.value.status) == (expected.code, expected.status)
    assert caught.value.__context__ is None
    if isinstance(body, dict):
        with pytest.raises(kind):
            speaker.decode_response({**ANSWERS[dialect], **body})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_with_an_error_field_is_an_answer(dialect: str) -> None:
    """A null is no error, and neither is a warning beside an answer."""
    speaker = dragoman.dialect(dialect)
    for error in (None, {"message": "slow"}, "slow"):
        wire = {**RICH[dialect, "response"][0], "error": error}
        response = speaker.decode_response(wire)
        assert response.message.parts
        assert normal(json.loads(speaker.encode_response(response).to_bytes())) == normal(wire)


def test_a_failed_response_is_an_answer() -> None:
    """A failed response in Responses has an id, and the output before the failure."""
    wire = {"id": "resp_1", "status": "failed", "output": [],
            "error": {"code": "server_error", "message": "x"}}  # fmt: skip
    speaker = dragoman.dialect("openai-responses")
    for body in (wire, {**wire, "object": "response"}):
        response = speaker.decode_response(body)
        assert response.id == "resp_1"
        assert normal(json.loads(speaker.encode_response(response).to_bytes())) == normal(body)
