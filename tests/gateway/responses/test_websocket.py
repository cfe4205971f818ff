"""Responses over a WebSocket: Codex's requests, OpenAI's client, and malformed messages."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from msgspec.structs import replace
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from dragoman.gateway.responses.websocket import Socket
from tests.gateway.responses.conftest import COVER, client_of, config_for
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import Serving, running

CODEX = {"openai-beta": "responses_websockets=2026-02-06"}
ENDS = {"response.completed", "response.incomplete", "response.failed", "error"}


@contextmanager
def socket(
    serving: Serving, path: str = "/v1/responses", **headers: str
) -> Generator[ClientConnection]:
    """A connection, opened as Codex does it."""
    url = serving.url.replace("http:", "ws:") + path
    with connect(url, additional_headers={**CODEX, **headers}) as made:
        yield made


def request(text: str | None, **changes: Any) -> dict[str, Any]:
    """What Codex sends, with all its fields."""
    items = [] if text is None else [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    ]  # fmt: skip
    return {
        "type": "response.create", "model": "chat", "instructions": "Be Codex", "input": items,
        "tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": None,
        "store": False, "stream": True, "include": [], "prompt_cache_key": "k",
        "client_metadata": {"session_id": "1"}, **changes,
    }  # fmt: skip


def turn(at: ClientConnection, given: dict[str, Any]) -> list[dict[str, Any]]:
    """All events of one turn."""
    at.send(json.dumps(given))
    return events_at(at)


def events_at(at: ClientConnection) -> list[dict[str, Any]]:
    """Events until the end of a turn."""
    events: list[dict[str, Any]] = []
    while not events or events[-1]["type"] not in ENDS:
        text = at.recv(timeout=20)
        assert isinstance(text, str)
        events.append(json.loads(text))
    return events


@pytest.mark.parametrize("name", COVER)
def test_codex_warms_up_and_goes_on(serving: Serving, scripted: Model, name: str) -> None:
    """Codex sends a warm-up, an empty addition and a second turn; nothing is stored."""
    with socket(serving) as at:
        warm = turn(at, request("Hello", model=name, generate=False))
        assert [each["type"] for each in warm] == ["response.created", "response.completed"]
        assert not scripted.asked
        id = warm[-1]["response"]["id"]
        first = turn(at, request(None, model=name, previous_response_id=id))
        assert first[-1]["type"] == "response.completed"
        assert first[-1]["response"]["output"][-1]["content"][0]["text"] == "answer 1"
        assert "Hello" in json.dumps(scripted.asked[-1])
        id = first[-1]["response"]["id"]
        second = turn(at, request("And then?", model=name, previous_response_id=id))
        assert second[-1]["response"]["store"] is False
        asked = json.dumps(scripted.asked[-1])
        assert asked.index("Hello") < asked.index("answer 1") < asked.index("And then?")
    with client_of(serving) as client, pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second[-1]["response"]["id"])


def test_it_needs_no_history(scripted: Model) -> None:
    """The connection's state is kept in memory, so no history store is needed."""
    with running(config_for(scripted.url)) as serving, socket(serving) as at:
        id = turn(at, request("Hello"))[-1]["response"]["id"]
        assert turn(at, request("More", previous_response_id=id))[-1]["type"].endswith("completed")


def test_state_belongs_to_its_connection(serving: Serving) -> None:
    """Another connection gets the error code that makes Codex resend everything."""
    with socket(serving) as at:
        id = turn(at, request("Hello"))[-1]["response"]["id"]
    with socket(serving) as at:
        told = turn(at, request("More", previous_response_id=id))
        assert [each["type"] for each in told] == ["error"]
        assert told[0]["status"] == 400
        assert told[0]["error"]["code"] == "previous_response_not_found"
        assert turn(at, request("All of it"))[-1]["type"] == "response.completed"


def test_stored_responses_are_continued(serving: Serving, scripted: Model) -> None:
    """Responses stored over HTTP can be continued here, and vice versa."""
    with client_of(serving) as client, socket(serving) as at:
        first = client.responses.create(model="chat", input="Hello")
        given = request("More", previous_response_id=first.id, store=True)
        second = turn(at, given)[-1]["response"]
        assert second["store"] is True
        client.responses.create(model="chat", input="End", previous_response_id=second["id"])
        asked = json.dumps(scripted.asked[-1])
        assert asked.index("Hello") < asked.index("More") < asked.index("End")


@pytest.mark.filterwarnings("ignore:connect.. must be used:DeprecationWarning")  # the client's own
def test_openais_client_speaks_it(client: Any) -> None:
    """OpenAI's client parses every event."""
    with client.responses.connect() as connection:
        for _ in range(2):
            connection.response.create(model="claude", input="Hello", stream_id="a")
            events: list[Any] = []
            while not events or events[-1].type not in ENDS:
                events.append(connection.recv())
            assert events[0].type == "response.created"
            assert events[-1].type == "response.completed"
            assert {event.stream_id for event in events} == {"a"}


def test_requests_wait_for_one_another(serving: Serving, scripted: Model) -> None:
    """Queued requests are handled in order, each with its `stream_id`."""
    scripted.gate.clear()
    with socket(serving) as at:
        for lane in "abc":
            at.send(json.dumps(request(f"for {lane}", stream_id=lane)))
        scripted.gate.set()
        turns = [events_at(at) for _ in "abc"]
        assert [{each["stream_id"] for each in events} for events in turns] == [{"a"}, {"b"}, {"c"}]


def test_cancelling_ends_a_turn_and_not_the_connection(serving: Serving, scripted: Model) -> None:
    """The upstream request ends, the client gets an event, and the next turn works."""
    scripted.gate.clear()
    with socket(serving) as at:
        at.send(json.dumps(request("Hello")))
        id = json.loads(at.recv(timeout=20))["response"]["id"]
        assert scripted.begun.wait(20)
        at.send(json.dumps({"type": "response.cancel", "response_id": id}))
        last = events_at(at)[-1]
        assert (last["type"], last["response"]["status"]) == ("response.incomplete", "cancelled")
        assert scripted.left.wait(20)
        scripted.gate.set()
        assert turn(at, request("Again"))[-1]["type"] == "response.completed"
        told = turn(at, {"type": "response.cancel"})
        assert told[-1]["status"] == 404


def test_a_client_that_leaves_takes_the_model_with_it(serving: Serving, scripted: Model) -> None:
    """When the client disconnects, the upstream request is cancelled."""
    scripted.gate.clear()
    with socket(serving) as at:
        at.send(json.dumps(request("Hello")))
        assert scripted.begun.wait(20)
    assert scripted.left.wait(20)


@pytest.mark.parametrize("text", [
    "", "no json", "[]", "5", '{"type":"other"}', '{"type":5}', '{"type":"response.steer"}',
    json.dumps(request("x", model=5)), json.dumps(request("x", input=5)),
    json.dumps(request("x", background=True)), json.dumps(request("x", previous_response_id="/")),
    json.dumps({"type": "response.create"}), "[" * 5000,
])  # fmt: skip
def test_bad_messages_are_answered(serving: Serving, text: str) -> None:
    """Each one gets an error with a status, and the connection stays open."""
    with socket(serving) as at:
        at.send(text)
        told = events_at(at)[-1]
        assert told["type"] == "error"
        assert 400 <= told["status"] < 500
        assert told["error"]["message"]
        at.ping().wait(20)
        assert turn(at, request("Good"))[-1]["type"] == "response.completed"


def test_an_error_of_the_model_is_told_with_its_status(
    serving: Serving, scripted: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error event has the status that HTTP would have returned."""
    with monkeypatch.context() as patch, socket(serving) as at:
        patch.setattr(scripted, "reply", lambda: 1 / 0)
        told = turn(at, request("x"))
        assert [each["type"] for each in told] == ["error"]
        assert told[0]["status"] >= 500


def test_binary_and_large_messages_close_the_connection(scripted: Model) -> None:
    """Binary messages, and messages over the size limit, close the connection."""
    with running(config_for(scripted.url, max_body=10_000)) as serving:
        for bad in (b"\x00", "x" * 20_000):
            with socket(serving) as at:
                at.send(bad)
                with pytest.raises(ConnectionClosed):
                    at.recv(timeout=20)


def test_idle_connections_are_closed(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is closed after its maximum idle time."""
    monkeypatch.setattr(Socket, "idle", 0.05)
    with socket(serving) as at, pytest.raises(ConnectionClosed):
        at.recv(timeout=20)


@pytest.mark.parametrize(("headers", "path", "status"), [
    ({"origin": "https://evil.example"}, "/v1/responses", 403),
    ({}, "/v1/chat/completions", 404),
    ({}, "/nowhere", 404),
])  # fmt: skip
def test_handshakes_are_refused(
    serving: Serving, headers: dict[str, str], path: str, status: int
) -> None:
    """Handshakes from other origins and for other paths are rejected."""
    with pytest.raises(InvalidStatus) as failure, socket(serving, path, **headers):
        pass
    assert failure.value.response.status_code == status


def test_the_server_stops_with_connections_open(scripted: Model) -> None:
    """Clients get a close message, and shutdown doesn't wait for them."""
    with running(config_for(scripted.url), stops=True) as serving:
        at = connect(serving.url.replace("http:", "ws:") + "/v1/responses", legacy=True)
        turn(at, request("Hello"))
    with pytest.raises(ConnectionClosed):
        at.recv(timeout=20)


def test_waiting_requests_are_bounded_in_bytes(scripted: Model) -> None:
    """A client that queues large requests is told to wait, long before there are sixteen."""
    config = config_for(scripted.url)
    config = replace(config, server=replace(config.server, max_body=100_000))
    with running(config) as serving, socket(serving) as at:
        for _ in range(6):
            at.send(json.dumps(request("wait" + "x" * 40_000)))
        first = json.loads(at.recv(timeout=20))
        while first["type"] != "error":
            first = json.loads(at.recv(timeout=20))
    assert (first["status"], "100,000 bytes" in first["error"]["message"]) == (503, True)


def test_connections_are_bounded(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection over the limit is rejected with a retryable status."""
    monkeypatch.setattr(Socket, "most_open", 0)
    with pytest.raises(InvalidStatus) as failure, socket(serving):
        pass
    assert failure.value.response.status_code == 503
