"""Conversations and their items, by OpenAI's own client."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import openai
import pytest

from dragoman.errors import InvalidRequest
from dragoman.gateway.histories import Histories
from dragoman.gateway.responses.conversations import ConversationStore
from tests.gateway.responses.conftest import COVER
from tests.gateway.responses.upstreams import Model


def message(text: str) -> dict[str, object]:
    """An item of the user's."""
    return {"type": "message", "role": "user", "content": text}


def test_a_conversation_lives_and_dies(client: Any) -> None:
    """Creates, reads, updates and deletes a conversation."""
    made = client.conversations.create(metadata={"topic": "a"}, items=[message("Hello")])
    assert made.id.startswith("conv_dgm")
    assert client.conversations.retrieve(made.id) == made
    changed = client.conversations.update(made.id, metadata={"topic": "b"})
    assert changed.metadata == {"topic": "b"}
    assert client.conversations.retrieve(made.id) == changed
    gone = client.conversations.delete(made.id)
    assert (gone.id, gone.deleted, gone.object) == (made.id, True, "conversation.deleted")
    for ask in (client.conversations.retrieve, client.conversations.delete):
        with pytest.raises(openai.NotFoundError, match="not found"):
            ask(made.id)


def test_items_are_added_listed_read_and_removed(client: Any) -> None:
    """Lists are paginated in both orders."""
    made = client.conversations.create(items=[message("0")])
    added = client.conversations.items.create(made.id, items=[message("1"), message("2")])
    assert [item.content[0].text for item in added.data] == ["1", "2"]
    ordered = list(client.conversations.items.list(made.id, order="asc", limit=1))
    assert [item.content[0].text for item in ordered] == ["0", "1", "2"]
    one = client.conversations.items.retrieve(ordered[1].id, conversation_id=made.id)
    assert one == ordered[1]
    left = client.conversations.items.delete(ordered[1].id, conversation_id=made.id)
    assert left.id == made.id
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(ordered[1].id, conversation_id=made.id)
    assert len(client.conversations.items.list(made.id).data) == 2


@pytest.mark.parametrize("name", COVER)
@pytest.mark.parametrize("stream", [False, True])
def test_answers_join_their_conversation(
    client: Any, scripted: Model, name: str, *, stream: bool
) -> None:
    """The next request continues the conversation by its id alone."""
    made = client.conversations.create(items=[message("Hello")])
    got: Any = None
    for number, given in enumerate(("One?", "Two?"), 1):
        given_as = made.id if number == 1 else {"id": made.id}
        got = client.responses.create(model=name, input=given, conversation=given_as, stream=stream)
        got = list(got)[-1].response if stream else got
        assert got.conversation is not None
        assert got.conversation.id == made.id
    asked = json.dumps(scripted.asked[-1])
    assert asked.index("Hello") < asked.index("One?") < asked.index("answer 1")
    assert asked.index("answer 1") < asked.index("Two?")
    texts = [
        item.content[0].text
        for item in client.conversations.items.list(made.id, order="asc")
        if item.type == "message"
    ]
    assert texts == ["Hello", "One?", "answer 1", "Two?", "answer 2"]
    after = client.responses.create(model=name, input="Three?", previous_response_id=got.id)
    asked = json.dumps(scripted.asked[-1])
    assert after.output_text == "answer 3"
    assert asked.index("Hello") < asked.index("answer 2") < asked.index("Three?")


def test_a_conversation_takes_answers_that_are_not_stored(client: Any) -> None:
    """`store: false` applies to the response, not to the conversation."""
    made = client.conversations.create()
    client.responses.create(model="chat", input="One?", conversation=made.id, store=False)
    assert len(client.conversations.items.list(made.id).data) == 2


def test_nothing_is_lost_when_many_add_at_once(client: Any) -> None:
    """Concurrent writers add each item exactly once."""
    made = client.conversations.create()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(
            lambda n: client.conversations.items.create(made.id, items=[message(str(n))]),
            range(40),
        ))  # fmt: skip
    items = client.conversations.items.list(made.id, limit=100).data
    assert sorted(int(item.content[0].text) for item in items) == list(range(40))


def test_items_of_one_id_are_kept_apart(client: Any) -> None:
    """An item whose id is already taken gets a new id."""
    made = client.conversations.create(items=[{**message("a"), "id": "msg_1"}])
    added = client.conversations.items.create(
        made.id, items=[{**message("b"), "id": "msg_1"}, {**message("c"), "id": "conversation"}]
    )
    assert "msg_1" not in {item.id for item in added.data}
    assert len(client.conversations.items.list(made.id).data) == 3


@pytest.mark.parametrize("body", [
    {"metadata": {"a": 1}}, {"metadata": {str(n): "x" for n in range(17)}}, {"metadata": []},
    {"items": "text"}, {"items": [1]}, {"items": [{"role": "user", "content": "x"}] * 21},
    {"items": [{"type": "item_reference", "id": "msg_none"}]}, [],
])  # fmt: skip
def test_malformed_conversations_are_refused(http: httpx.Client, body: object) -> None:
    """Each one gets a 4xx error."""
    answer = http.post("/v1/conversations", json=body)
    assert answer.status_code in {400, 404}, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("item", ["../x", "%00", "conversation", "x" * 500, "a%2Fb"])
def test_items_of_nothing_are_not_found(http: httpx.Client, client: Any, item: str) -> None:
    """Unknown and malformed item ids give a 404 or 405."""
    made = client.conversations.create()
    for method in ("GET", "DELETE"):
        path = f"/v1/conversations/{made.id}/items/{item}"
        assert http.request(method, path).status_code in {404, 405}


class Small(ConversationStore):
    """A store that reads few bytes at once."""

    most_bytes = 100_000


async def test_a_conversation_too_large_to_read_at_once() -> None:
    """All items are read in steps, and never more bytes than allowed; single ones always can be."""
    histories = Histories("memory:", response_ttl=1000.0)
    store = Small(histories, None)
    many = await store.create({}, [message("x") for _ in range(20)])
    for _ in range(5):
        await store.add(many["id"], [message("x") for _ in range(20)])
    assert len(await store.items(many["id"])) == 120
    large = await store.create({}, [message("x" * 9_000) for _ in range(20)])
    with pytest.raises(InvalidRequest, match="too many bytes"):
        await store.items(large["id"])
    [added] = await store.add(large["id"], [message("y")])
    assert (await store.item(large["id"], added["id"]))["content"] == "y"
    await histories.close()
