"""Stored responses, by OpenAI's own client, in front of three dialects."""

from __future__ import annotations

import json
from typing import Any

import httpx
import openai
import pytest

from dragoman.gateway.responses import context
from tests.gateway.responses.conftest import COVER, MODELS, client_of, config_for
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import running

PLAIN = [{"role": "user", "content": "Where?"}]


def texts_asked(scripted: Model) -> str:
    """The latest request, as text."""
    return json.dumps(scripted.asked[-1])


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_is_stored_under_an_id_of_ours(client: Any, name: str, *, stream: bool) -> None:
    """The stored response equals the one that the client received, whole or streamed."""
    if stream:
        events = list(client.responses.create(model=name, input="Hello", stream=True))
        got = events[-1].response
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert events[0].response.id == got.id
    else:
        got = client.responses.create(model=name, input="Hello")
    assert got.id.startswith("resp_dgm")
    assert got.output_text == "answer 1"
    assert got.model_extra["store"] is True
    again = client.responses.retrieve(got.id)
    assert again.to_dict() == got.to_dict()


@pytest.mark.parametrize("name", COVER)
@pytest.mark.parametrize("stream", [False, True])
def test_previous_response_is_put_into_the_input(
    client: Any, scripted: Model, name: str, *, stream: bool
) -> None:
    """The model receives all turns, with only the current request's instructions."""
    first = client.responses.create(model=name, input="Hello", instructions="Be brief")
    made = client.responses.create(
        model=name, input="And then?", previous_response_id=first.id, stream=stream
    )
    second = list(made)[-1].response if stream else made
    asked = texts_asked(scripted)
    assert second.previous_response_id == first.id
    assert asked.index("Hello") < asked.index("answer 1") < asked.index("And then?")
    assert "Be brief" not in asked
    assert "previous_response_id" not in asked
    third = client.responses.create(model=name, input="Good", previous_response_id=second.id)
    asked = texts_asked(scripted)
    assert asked.index("Hello") < asked.index("answer 2") < asked.index("Good")
    assert third.output_text == "answer 3"


def test_sealed_thinking_returns_to_its_model(client: Any, scripted: Model) -> None:
    """Anthropic's signature is restored from the store for the next turn."""
    first = client.responses.create(model="claude", input="Hello", reasoning={"effort": "low"})
    client.responses.create(
        model="claude", input="Go on", previous_response_id=first.id, reasoning={"effort": "low"}
    )
    assert "sig1" in texts_asked(scripted)


def test_a_back_that_speaks_responses_is_told_to_store_nothing(
    client: Any, scripted: Model
) -> None:
    """A response stored by the gateway is not stored upstream as well."""
    client.responses.create(model="gpt", input="Hello")
    assert scripted.asked[-1]["store"] is False


@pytest.mark.parametrize("name", COVER)
def test_store_false_is_honoured(client: Any, name: str) -> None:
    """The response can't be retrieved, and its `store` field is false."""
    got = client.responses.create(model=name, input="Hello", store=False)
    if name != "gpt":
        assert got.model_extra["store"] is False
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(got.id)


def test_a_route_can_refuse_to_store(client: Any) -> None:
    """The route's setting overrides the client's, and the response reports it."""
    got = client.responses.create(model="unstored", input="Hello", store=True)
    assert got.model_extra["store"] is False


def test_what_needs_a_history_says_so(scripted: Model) -> None:
    """Not in the background, and no conversations: only responses are kept, in memory."""
    with running(config_for(scripted.url)) as serving, client_of(serving) as client:
        with pytest.raises(openai.BadRequestError, match="history store"):
            client.responses.create(model="chat", input="Hello", background=True)
        with pytest.raises(openai.BadRequestError, match="history store"):
            client.conversations.create()


def test_deleted_is_gone(client: Any) -> None:
    """A deleted response can't be read, continued or deleted again."""
    got = client.responses.create(model="chat", input="Hello")
    client.responses.delete(got.id)
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError):
            ask(got.id)
    with pytest.raises(openai.BadRequestError) as failure:
        client.responses.create(model="chat", input="And?", previous_response_id=got.id)
    assert failure.value.code == "previous_response_not_found"
    assert failure.value.param == "previous_response_id"


def test_deleting_in_mid_stream(client: Any, scripted: Model) -> None:
    """A response deleted mid-stream is not stored; the stream continues."""
    scripted.gate.clear()
    stream = iter(client.responses.create(model="chat", input="Hello", stream=True))
    id = next(stream).response.id
    assert client.responses.delete(id) is None
    with pytest.raises(openai.NotFoundError):
        client.responses.delete(id)
    scripted.gate.set()
    assert list(stream)[-1].response.output_text == "answer 1"
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(id)


def test_input_items_are_listed_in_pages(client: Any) -> None:
    """In both orders, with ids, and through the client's pagination."""
    given = [{"role": "user", "content": f"part {number}"} for number in range(5)]
    got = client.responses.create(model="chat", input=given)
    ordered = list(client.responses.input_items.list(got.id, order="asc", limit=2))
    assert [item.content[0].text for item in ordered] == [f"part {n}" for n in range(5)]
    backwards = list(client.responses.input_items.list(got.id, limit=2))
    assert [item.id for item in backwards] == [item.id for item in reversed(ordered)]
    page = client.responses.input_items.list(got.id, order="asc", after=ordered[1].id, limit=2)
    assert [item.id for item in page.data] == [ordered[2].id, ordered[3].id]
    assert page.has_more
    for bad in ({"limit": 0}, {"limit": 101}, {"order": "up"}, {"after": "msg_none"}):
        with pytest.raises(openai.BadRequestError):
            client.responses.input_items.list(got.id, **bad)


@pytest.mark.parametrize("name", COVER)
def test_item_references_are_looked_up(client: Any, scripted: Model, name: str) -> None:
    """References to earlier output and input items are replaced by the items."""
    first = client.responses.create(model=name, input="Hello")
    asked = client.responses.input_items.list(first.id).data[0]
    said = next(item for item in first.output if item.type == "message")
    given = [
        {"type": "item_reference", "id": asked.id},
        {"type": "item_reference", "id": said.id},
        {"role": "user", "content": "Why?"},
    ]
    client.responses.create(model=name, input=given)
    text = texts_asked(scripted)
    assert text.index("Hello") < text.index("answer 1") < text.index("Why?")
    assert "item_reference" not in text


@pytest.mark.parametrize("stream", [False, True])
def test_foreign_state_passes_to_its_own_server(
    client: Any, scripted: Model, *, stream: bool
) -> None:
    """Ids of other servers are passed to an upstream that speaks Responses."""
    made = client.responses.create(
        model="gpt", input="And?", previous_response_id="resp_68af", store=True, stream=stream
    )
    got = list(made)[-1].response if stream else made
    assert scripted.asked[-1]["previous_response_id"] == "resp_68af"
    assert scripted.asked[-1]["store"] is True
    assert got.id == "resp_up1"


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_foreign_state_is_refused_where_nobody_knows_it(
    client: Any, scripted: Model, field: str
) -> None:
    """Unknown state is an error, never a response without the context."""
    with pytest.raises(openai.BadRequestError):
        client.responses.create(model="chat", input="And?", **{field: "other_1"})
    assert not scripted.asked


def test_a_whole_answer_is_streamed_again(client: Any) -> None:
    """A stored response can be streamed from the start or after any event."""
    got = client.responses.create(model="chat", input="Hello")
    events = list(client.responses.retrieve(got.id, stream=True))
    assert events[-1].response.output_text == "answer 1"
    rest = list(client.responses.retrieve(got.id, stream=True, starting_after=2))
    assert rest == events[3:]


HOSTILE = [
    "resp_dgm" + "0" * 32, "resp_1", "../../etc/passwd", "a%2Fb", "%00", "resp_dgm%0a", "é" * 50,
    "x" * 3000, "'; DROP TABLE messages; --",
]  # fmt: skip


@pytest.mark.parametrize("id", HOSTILE)
def test_ids_of_nothing_are_not_found(http: httpx.Client, id: str) -> None:
    """Any id in the path gives a 4xx in OpenAI's format and never reads a file."""
    for method, path in (
        ("GET", ""), ("DELETE", ""), ("POST", "/cancel"), ("GET", "/input_items"),
    ):  # fmt: skip
        for folder in ("responses", "conversations"):
            answer = http.request(method, f"/v1/{folder}/{id}{path}")
            assert answer.status_code in {404, 405}, answer.text
            assert answer.json()["error"]["type"] == "invalid_request_error"
    body = {"model": "chat", "input": "x", "previous_response_id": id}
    answer = http.post("/v1/responses", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "previous_response_not_found"


@pytest.mark.parametrize("body", [
    {"previous_response_id": 5}, {"conversation": 5}, {"conversation": {"id": []}}, {"store": 1},
    {"input": 7}, {"input": [7]}, {"input": [{"type": "item_reference"}]}, {"background": True,
    "store": False}, {"previous_response_id": "resp_1", "conversation": "conv_1"},
])  # fmt: skip
def test_malformed_state_is_refused(http: httpx.Client, body: dict[str, object]) -> None:
    """Each malformed field gives a 400 with a message."""
    answer = http.post("/v1/responses", json={"model": "chat", "input": "x", **body})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["message"]


def test_what_has_expired_is_gone(scripted: Model) -> None:
    """Expiry applies on read, even before the sweep."""
    config = config_for(scripted.url, history="memory:", response_ttl=0.001)
    with running(config) as serving, client_of(serving) as client:
        got = client.responses.create(model="chat", input="Hello")
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(got.id)


def test_chains_are_bounded(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that exceeds the limit is rejected with a clear error."""
    monkeypatch.setattr(context, "MAX_LINKS", 3)
    last: Any = None
    for _ in range(4):
        last = client.responses.create(
            model="chat", input="x", previous_response_id=None if last is None else last.id
        )
        assert last is not None
    with pytest.raises(openai.BadRequestError, match="The chain has more than"):
        client.responses.create(model="chat", input="x", previous_response_id=last.id)


@pytest.mark.parametrize("path", ["/v1/responses/compact", "/responses/compact"])
def test_compaction_is_not_taken_for_a_response(client: Any, scripted: Model, path: str) -> None:
    """`compact` is no id: the error says that there is no such endpoint, and what to do."""
    url = str(client.base_url).split("/v1")[0]
    got = httpx.post(f"{url}{path}", json={"model": "gpt", "input": "Hello"})
    assert got.status_code == 404
    assert got.json()["error"]["code"] == "unsupported_endpoint"
    assert "context_management" in got.json()["error"]["message"]
    assert "id" not in got.json()["error"]["message"].split()
    assert scripted.asked == []
    assert httpx.get(f"{url}{path}").status_code == 405
