"""All stored state belongs to the key that created it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import openai
import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.gateway.responses.conftest import client_of, config_for
from tests.gateway.responses.identified import NamedKeys
from tests.gateway.responses.upstreams import Model
from tests.gateway.running import Serving, running


@pytest.fixture(scope="module")
def gateway(behind: Model) -> Iterator[Serving]:
    """A gateway that tells keys apart."""
    with running(config_for(behind.url, history="memory:")) as found:
        found.gateway.keys = NamedKeys()  # type: ignore[assignment]  # only what is used
        yield found


def test_another_key_finds_nothing(serving: Serving, scripted: Model) -> None:
    """Another key can't read, continue, reference or delete the response."""
    with client_of(serving, "sk-ana") as ana, client_of(serving, "sk-bob") as bob:
        made = ana.responses.create(model="chat", input="Hello", background=True)
        got = ana.responses.create(model="gpt", input="Hello")
        talk = ana.conversations.create(items=[{"role": "user", "content": "Hello"}])
        item = ana.conversations.items.list(talk.id).data[0]
        for id in (made.id, got.id):
            for ask in (bob.responses.retrieve, bob.responses.cancel, bob.responses.delete,
                        bob.responses.input_items.list):  # fmt: skip
                with pytest.raises(openai.NotFoundError):
                    ask(id)
            with pytest.raises(openai.BadRequestError, match="not found"):
                bob.responses.create(model="chat", input="x", previous_response_id=id)
        asked = len(scripted.asked)
        for reference in (got.output[0].id, item.id):
            given = [{"type": "item_reference", "id": reference}]
            with pytest.raises((openai.NotFoundError, openai.BadRequestError)):
                bob.responses.create(model="chat", input=given)
        with pytest.raises(openai.NotFoundError):
            bob.responses.create(model="chat", input="x", conversation=talk.id)
        for ask in (bob.conversations.retrieve, bob.conversations.delete,
                    bob.conversations.items.list):  # fmt: skip
            with pytest.raises(openai.NotFoundError):
                ask(talk.id)
        assert len(scripted.asked) == asked
        assert ana.conversations.retrieve(talk.id).id == talk.id
        assert ana.responses.retrieve(got.id).id == got.id


def test_a_websocket_needs_a_key(serving: Serving) -> None:
    """A handshake without a key is rejected like a request."""
    url = serving.url.replace("http:", "ws:") + "/v1/responses"
    with pytest.raises(InvalidStatus) as failure, connect(url):
        pass
    assert failure.value.response.status_code == 401
    with connect(url, additional_headers={"authorization": "Bearer sk-ana"}) as at:
        at.send(json.dumps({"type": "response.create", "model": "chat", "input": "x"}))
        assert json.loads(at.recv(timeout=20))["type"] == "response.created"
