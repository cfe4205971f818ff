"""Thinking as parts of the content, for clients of Mistral's SDK."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.responses import Choice, Response
from dragoman.providers.registry import provider
from dragoman.wire.dialect import dialect
from dragoman.wire.envelope import PREFIX
from dragoman.wire.front import Front, front_form

CHAT = dialect("openai-chat")
FAKE = f"{PREFIX}AAAA"
"""Looks like an envelope, and is none."""


def texts(*said: str) -> list[dict[str, str]]:
    """The pieces of a chunk."""
    return [{"type": "text", "text": each} for each in said]


@pytest.mark.parametrize("role", ["assistant", "user"])
@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "thinking", "thinking": texts("a"), "signature": FAKE},
        {"type": "thinking", "thinking": texts("a", "b"), "signature": FAKE, "closed": True},
        {"type": "thinking", "thinking": texts(""), "signature": FAKE},
        {"type": "thinking", "thinking": [], "signature": FAKE},
        {"type": "thinking", "thinking": texts("a", "b"), "signature": "of Mistral"},
        {"type": "thinking", "thinking": [], "closed": True},
    ],
)
@pytest.mark.parametrize("target", [None, "mistral"])
def test_chunks_are_sent_as_they_came(chunk: dict[str, Any], role: str, target: str | None) -> None:
    """A signature that only looks like an envelope is the provider's."""
    content = [chunk, {"type": "text", "text": "said"}]
    messages = [{"role": "user", "content": "?"}, {"role": role, "content": content}]
    body: dict[str, Any] = {
        "model": "mistral-small-2603",
        "messages": [*messages, {"role": "user", "content": "!"}],
    }
    host = None if target is None else provider(target).target(body["model"], "openai-chat")
    encoded = CHAT.encode_request(CHAT.decode_request(body), host)
    assert encoded.body == body
    assert not encoded.losses


def client_turn(*parts: Any, **request: Any) -> list[Any]:
    """The content that a Mistral client gets for a response with these parts."""
    agent = front_form(CHAT).agents[b"mistral-client"]
    asked = CHAT.decode_request({"model": "m", "messages": [], **request})
    message = Message.assistant(*parts).replace(origin=Origin(dialect="anthropic"))
    response = Response(choices=(Choice(0, message),))
    encoded = Front(CHAT, asked, agent=agent).response(response)
    assert not encoded.losses
    content: list[Any] = encoded.body["choices"][0]["message"]["content"]
    return content


def came_back(content: Any) -> tuple[Any, ...]:
    """The parts that a client's turn is decoded to."""
    body = {"model": "m", "messages": [{"role": "assistant", "content": content}]}
    return CHAT.decode_request(body).messages[0].parts


SIGNED = (Thinking("one", signature="c2ln"), Text("between"), Thinking("two", signature="c2lu"))


def test_order_and_state_survive() -> None:
    """Thinking after a text stays there, with its signature."""
    parts = came_back(client_turn(*SIGNED, Text("end"), reasoning_effort="high"))
    found = [(type(part), part.text, part.signature) for part in parts]
    assert found == [(type(part), part.text, part.signature) for part in (*SIGNED, Text("end"))]
    assert {part.origin for part in parts if type(part) is Thinking} == {
        Origin(dialect="anthropic")
    }


def test_pieces_that_the_client_joined_in_one_chunk() -> None:
    """A client may collect a stream's pieces in one chunk."""
    [chunk, text] = client_turn(Thinking("a thought", signature="c2ln"), Text("said"))
    pieces = {**chunk, "thinking": texts("a ", "tho", "ught")}
    [thought, _] = came_back([pieces, text])
    assert (thought.text, thought.signature) == ("a thought", "c2ln")
    apart = [{"type": "thinking", "thinking": texts(each)} for each in ("a ", "thought")]
    [thought, _] = came_back([*apart, {**chunk, "thinking": []}, text])
    assert (thought.text, thought.signature) == ("a thought", "c2ln")


def test_redacted_thinking_has_a_chunk_without_text() -> None:
    """It is kept if the client asked for thinking."""
    redacted = Thinking("", "ZGF0YQ==", "redacted")
    [bare, _] = content = client_turn(redacted, Text("said"), prompt_mode="reasoning")
    assert bare["thinking"] == []
    [back, _] = came_back(content)
    assert (back.data, back.form, back.origin.dialect) == ("ZGF0YQ==", "redacted", "anthropic")
