"""Ollama's official client reads our bodies and streams."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given

import dragoman
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.requests import Request
from dragoman.model.responses import Response
from dragoman.wire.ollama.codec import DIALECT
from tests.corpus import Corpus
from tests.wire import recorded
from tests.wire.ollama.streams import PAIRS, decoded, encoded, stream
from tests.wire.recorded import bodies, has_conversation
from tests.wire.test_matrix_random import histories

ollama = pytest.importorskip("ollama")
httpx = pytest.importorskip("httpx")

SOURCES = dragoman.dialects()


def accept(body: Any) -> None:
    """Raises if the client's types reject a request or one of its messages."""
    plain = json.loads(json.dumps(body, default=dict))
    request = ollama._types.ChatRequest(**{"model": "m", **plain})
    for message in plain["messages"]:
        if "images" in message:  # the client's type wraps each image
            message["images"] = [{"value": image} for image in message["images"]]
        ollama.Message(**message).model_dump()
    request.model_dump(exclude_none=True)


Answer = tuple[str, str, list[Any], tuple[int, int]]


def client(answer: bytes, kind: str = "application/json", status: int = 200) -> Any:
    """A client of a server that answers with these bytes."""

    def answered(_request: Any) -> Any:
        return httpx.Response(status, headers={"content-type": kind}, content=answer)

    return ollama.Client(host="http://test", transport=httpx.MockTransport(answered))


def whole(body: bytes) -> Answer:
    """What the client reads from a plain response."""
    return _read([client(body).chat("m", [{"role": "user", "content": "Hi"}])])


def streamed(lines: bytes) -> Answer:
    """What the client reads from a stream."""
    asked = client(lines, "application/x-ndjson").chat("m", [], stream=True)
    return _read(list(asked))


def _read(answers: list[Any]) -> Answer:
    messages = [answer.message for answer in answers]
    calls = [call.function for message in messages for call in message.tool_calls or ()]
    last = answers[-1]
    assert last.done
    return (
        "".join(message.content or "" for message in messages),
        "".join(message.thinking or "" for message in messages),
        [(call.name, dict(call.arguments)) for call in calls],
        (last.prompt_eval_count or 0, last.eval_count or 0),
    )


def ours(response: Response) -> Answer:
    """The same fields of our own response."""
    message, usage = response.message, response.usage
    calls = [(call.name, call.object_arguments()) for call in recorded.runnable(message)]
    counts = (usage.total_input, usage.total_output) if usage else (0, 0)
    return message.text, message.thinking, calls, counts


@pytest.mark.parametrize("name", sorted(set(PAIRS) - {"malformed call", "picture"}))
def test_client_reads_bodies_and_streams_alike(name: str) -> None:
    """The client reads the same from our body, from our stream and from the server's."""
    decoder, events = decoded([stream(name)])
    body = DIALECT.encode_response(decoder.response).to_bytes()
    assert whole(body) == streamed(encoded(events)) == streamed(stream(name))
    assert whole(body) == ours(decoder.response)


@given(request=histories())
def test_client_types_accept_our_requests(request: Request) -> None:
    """The client's types accept the request of any history."""
    accept(DIALECT.encode_request(request).body)


@pytest.mark.corpus
@pytest.mark.parametrize("source", SOURCES)
def test_client_types_accept_recorded_histories(corpus: Corpus, source: str) -> None:
    """The client's types accept recorded requests of every dialect."""
    refused = []
    for body in bodies(corpus, source):
        request = body.decode()
        if isinstance(request, Request) and has_conversation(request, "ollama"):
            try:
                accept(DIALECT.encode_request(request).body)
            except ValueError as error:
                refused.append((body.recording.row.file, str(error).partition("\n")[2][:200]))
    assert refused == []


@pytest.mark.corpus
@pytest.mark.parametrize("source", SOURCES)
def test_client_reads_responses_of_every_dialect(corpus: Corpus, source: str) -> None:
    """The client reads text, thinking, calls and counts of recorded responses."""
    wrong = []
    for body in bodies(corpus, source):
        response = body.decode()
        if isinstance(response, Response) and response.finish and _is_plain(response):
            written = DIALECT.encode_response(response)
            if whole(written.to_bytes()) != ours(response):
                wrong.append(body.recording.row.file)
    assert wrong == []


@pytest.mark.corpus
@pytest.mark.parametrize("source", SOURCES)
def test_client_reads_streams_of_every_dialect(corpus: Corpus, source: str) -> None:
    """The client reads text, thinking, calls and counts of recorded streams."""
    wrong = []
    for file, _, _, events in recorded.decoded(corpus, source):
        folded = MessageAccumulator()
        folded.extend(events)
        response = folded.response
        if not folded.is_complete or not response.choices or not _is_plain(response):
            continue
        encoder = DIALECT.stream_encoder()
        written = b"".join([*map(encoder.feed, events), encoder.close()])
        if any("corrected" in loss.reason for loss in encoder.losses):
            continue  # a fixture whose deltas don't add up to its final text
        if _joined(streamed(written)) != _joined(ours(response)):
            wrong.append(file)
    assert wrong == []


def _is_plain(response: Response) -> bool:
    """Whether the arguments of every call are an object; others are wrapped or left out."""
    return all(call.object_arguments() is not None for call in response.message.tool_calls)


def _joined(answer: Answer) -> Answer:
    return answer[0], "".join(answer[1].split()), *answer[2:]


@pytest.mark.parametrize(
    "ask",
    [
        lambda found: found.chat("m", []),
        lambda found: list(found.chat("m", [], stream=True)),
    ],
)
def test_client_reads_our_errors(ask: Callable[[Any], Any]) -> None:
    """The client gets status and text, plain or streamed."""
    status, body = DIALECT.encode_error(dragoman.errors.ContextTooLong("too long"))
    with pytest.raises(ollama.ResponseError) as caught:
        ask(client(json.dumps(body).encode(), status=status))
    assert caught.value.status_code == 400
    assert "context length" in caught.value.error


def test_client_raises_on_a_truncated_stream() -> None:
    """Our last line is an error, which the client raises (G1)."""
    _, events = decoded([stream("text")[:200]])
    with pytest.raises(ollama.ResponseError):
        list(client(encoded(events), "application/x-ndjson").chat("m", [], stream=True))
