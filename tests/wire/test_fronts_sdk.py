"""The loop through a front with the vendor's own SDK as client: two turns over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import dragoman
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from tests.wire.clients import FRONTS, needed, seals, sent, streamed
from tests.wire.loopback import Answers, answering
from tests.wire.test_fronts import ANSWERS, decoded, direct, events_of

NAMES = [
    "gemini: parallel calls, the first signed",
    "gemini: signed text",
    "gemini: a signature alone",
    "responses: summaries and a message",
    "responses: thinking in between",
    "anthropic: thinking in between",
    "anthropic: thinking and a call",
]


@pytest.fixture(name="gateway", scope="module")
def _gateway() -> Iterator[Answers]:
    with answering() as answers:
        yield answers


def _anthropic(address: str, *, is_stream: bool) -> None:
    sdk: Any = pytest.importorskip("anthropic")
    turns: list[Any] = [{"role": "user", "content": "Hi"}]
    with sdk.Anthropic(base_url=address, api_key="k", max_retries=0) as client:
        for _ in range(2):
            fields: dict[str, Any] = {"model": "m", "max_tokens": 99, "messages": turns}
            if is_stream:
                with client.messages.stream(**fields) as stream:
                    message = stream.get_final_message()
            else:
                message = client.messages.create(**fields)
            turns = [*turns, {"role": "assistant", "content": message.content}]


def _chat(address: str, *, is_stream: bool) -> None:
    sdk: Any = pytest.importorskip("openai")
    turns: list[Any] = [{"role": "user", "content": "Hi"}]
    with sdk.OpenAI(base_url=address, api_key="k", max_retries=0) as client:
        for _ in range(2):
            fields: dict[str, Any] = {"model": "m", "messages": turns}
            if is_stream:
                with client.chat.completions.stream(**fields) as stream:
                    for _event in stream:
                        pass
                    answer = stream.get_final_completion()
            else:
                answer = client.chat.completions.create(**fields)
            turns = [*turns, answer.choices[0].message.model_dump(exclude_none=True)]


def _responses(address: str, *, is_stream: bool) -> None:
    sdk: Any = pytest.importorskip("openai")
    turns: list[Any] = [{"role": "user", "content": "Hi"}]
    with sdk.OpenAI(base_url=address, api_key="k", max_retries=0) as client:
        for _ in range(2):
            fields: dict[str, Any] = {"model": "m", "input": turns}
            if is_stream:
                with client.responses.stream(**fields) as stream:
                    answer = stream.get_final_response()
            else:
                answer = client.responses.create(**fields)
            turns = [*turns, *answer.output]


def _gemini(address: str, *, is_stream: bool) -> None:
    sdk: Any = pytest.importorskip("google.genai")
    client = sdk.Client(api_key="k", http_options={"base_url": address})
    chat = client.chats.create(model="m")
    for _ in range(2):
        if is_stream:
            for _chunk in chat.send_message_stream("Hi"):
                pass
        else:
            chat.send_message("Hi")


CLIENTS: dict[str, Callable[..., None]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
LOOPS = [
    pytest.param(name, front, is_stream, id=f"{name}, behind {front}, {kind}")
    for name in NAMES
    for front in FRONTS
    for kind, is_stream in (("plain", False), ("streamed", True))
    if front != ANSWERS[name][0]
]


@pytest.mark.parametrize(("name", "front", "is_stream"), LOOPS)
def test_sealed_state_round_trips_through_an_sdk(
    gateway: Answers, name: str, front: str, is_stream: bool
) -> None:
    """Each seal, and each item id that is needed, returns to its position."""
    home, body = ANSWERS[name]
    response = decoded(home, body)
    gateway.came.clear()
    gateway.plain = dragoman.dialect(front).encode_response(response).to_bytes()
    gateway.streamed = streamed(front, events_of(response))
    CLIENTS[front](gateway.address, is_stream=is_stream)
    second = gateway.came[1]
    messages = dragoman.dialect(front).decode_request(second.json, path=second.path).messages
    answers = [Message(m.role, m.parts) for m in messages if m.role is Role.ASSISTANT]
    found, wanted = (needed(sent(home, turns).body) for turns in (answers, direct(response)))
    assert seals(home, found) == seals(home, wanted)
    assert seals(home, found)
