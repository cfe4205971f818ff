"""Responses in the background: polled, streamed, cancelled, left alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import openai
import pytest

from dragoman.gateway.responses import store
from tests.gateway.responses.conftest import COVER, client_of, config_for
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import running


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that is bound to happen."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("name", COVER)
def test_it_is_polled_until_it_is_complete(client: Any, scripted: Model, name: str) -> None:
    """The status goes from queued to in progress to completed without a waiting client."""
    scripted.gate.clear()
    made = client.responses.create(model=name, input="Hello", background=True)
    assert made.status == "queued"
    assert made.background is True
    assert scripted.begun.wait(20)
    assert client.responses.retrieve(made.id).status == "in_progress"
    scripted.gate.set()
    until(lambda: client.responses.retrieve(made.id).status == "completed")
    got = client.responses.retrieve(made.id)
    assert (got.id, got.output_text) == (made.id, "answer 1")
    again = client.responses.create(model=name, input="Next", previous_response_id=made.id)
    assert again.output_text == "answer 2"


@pytest.mark.parametrize("name", COVER)
def test_its_stream_is_taken_up_again(client: Any, scripted: Model, name: str) -> None:
    """A client that disconnects mid-stream can resume after any event."""
    scripted.gate.clear()
    stream = client.responses.create(model=name, input="Hello", background=True, stream=True)
    first = next(iter(stream))
    assert scripted.begun.wait(20)
    stream.close()
    scripted.gate.set()
    rest = list(client.responses.retrieve(first.response.id, stream=True, starting_after=0))
    numbers = [event.sequence_number for event in rest]
    assert numbers == list(range(1, len(rest) + 1))
    assert rest[-1].response.output_text == "answer 1"
    assert not scripted.left.is_set()
    until(lambda: client.responses.retrieve(first.response.id).status == "completed")


@pytest.mark.parametrize("stream", [False, True])
def test_cancelling_stops_the_model(client: Any, scripted: Model, *, stream: bool) -> None:
    """The upstream request ends, and the response stays cancelled."""
    scripted.gate.clear()
    made = client.responses.create(model="chat", input="Hello", background=True, stream=stream)
    id = next(iter(made)).response.id if stream else made.id
    assert scripted.begun.wait(20)
    assert client.responses.cancel(id).status == "cancelled"
    assert scripted.left.wait(20)
    scripted.gate.set()
    assert client.responses.cancel(id).status == "cancelled"
    assert client.responses.retrieve(id).status == "cancelled"
    events = list(client.responses.retrieve(id, stream=True))
    assert events[-1].response.status == "cancelled"
    with pytest.raises(openai.BadRequestError, match="can't be continued"):
        client.responses.create(model="chat", input="x", previous_response_id=id)


def test_deleting_in_mid_stream_stops_it(client: Any, scripted: Model) -> None:
    """A deleted response is not recreated when the model finishes."""
    scripted.gate.clear()
    stream = client.responses.create(model="chat", input="Hello", background=True, stream=True)
    id = next(iter(stream)).response.id
    assert scripted.begun.wait(20)
    client.responses.delete(id)
    assert scripted.left.wait(20)
    list(stream)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(id)


def test_only_background_can_be_cancelled(client: Any) -> None:
    """Cancelling any other response is an error, as at OpenAI."""
    made = client.responses.create(model="chat", input="Hello")
    with pytest.raises(openai.BadRequestError, match="background=true"):
        client.responses.cancel(made.id)


def test_a_model_that_fails_leaves_a_failed_response(
    client: Any, scripted: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stored response contains the same error that HTTP would have returned."""
    monkeypatch.setattr(scripted, "reply", lambda: 1 / 0)
    made = client.responses.create(model="chat", input="Hello", background=True)
    until(lambda: client.responses.retrieve(made.id).status == "failed")
    error = client.responses.retrieve(made.id).error
    assert error is not None
    assert error.code == "server_error"


def test_the_end_of_the_server_is_told(scripted: Model, tmp_path: object) -> None:
    """On shutdown, running responses are marked as failed instead of staying in progress."""
    url = f"sqlite:///{tmp_path}/chats.db"
    scripted.gate.clear()
    config = config_for(scripted.url, history=url, drain_timeout=0.1)
    with running(config) as serving, client_of(serving) as client:
        made = client.responses.create(model="chat", input="Hello", background=True)
        assert scripted.begun.wait(20)
    with running(config) as serving, client_of(serving) as client:
        got = client.responses.retrieve(made.id)
        assert got.status == "failed"


def test_a_worker_that_was_killed_is_noticed(
    client: Any, scripted: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response without a heartbeat for too long counts as failed."""
    monkeypatch.setattr(store, "_ABANDONED", -1.0)
    scripted.gate.clear()
    made = client.responses.create(model="chat", input="Hello", background=True)
    assert client.responses.retrieve(made.id).status == "failed"
    scripted.gate.set()


@pytest.mark.parametrize("query", ["stream=true&starting_after=-1", "stream=true&starting_after=x"])
def test_bad_places_in_a_stream(http: httpx.Client, client: Any, query: str) -> None:
    """A malformed sequence number is rejected."""
    made = client.responses.create(model="chat", input="Hello")
    answer = http.get(f"/v1/responses/{made.id}?{query}")
    assert answer.status_code == 400
