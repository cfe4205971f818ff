"""User input as messages: what is read, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import deque
from typing import Any

import anthropic.types
import openai.types.chat
import pytest

from dragoman.errors import InvalidInputError
from dragoman.interop.reader import read_history, read_request
from dragoman.model.collection import Messages
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Text, Thinking
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.store import Section
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import FinishReason
from tests.interop.inputs.talk import ROUND, TALK, body_of, rounds

SECRET = "xyzzy-the-secret"
CALL = ToolCall("c1", "f", input={"a": 1})
CALLED = Message.assistant(tool_calls=[CALL])
ANSWERED = Message.tool("c1", "ok")
GEMINI_CALL = {"functionCall": {"name": "f", "args": {"a": 1}}}
CLAUDE_CALL = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}


class Speaker:
    """An object with `to_message`."""

    def to_message(self) -> Message:
        """The object as a message."""
        return CALLED


class Talk:
    """An object with `to_messages`."""

    def to_messages(self) -> Messages:
        """The object as messages."""
        return Messages(CALLED, ANSWERED)


# --- one message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hi", Message.user("hi")),
        (Text("hi"), Message.user("hi")),
        (CALL, CALLED),
        (ToolResult.success("c1", "ok"), ANSWERED),
        (Thinking("hm"), Message.assistant(Thinking("hm"))),
        ([Text("a"), CALL], Message.assistant("a", CALL)),
        (("human", "hi"), Message.user("hi")),
        (("ai", "hi"), Message.assistant("hi")),
        (("SYSTEM", "hi"), Message.system("hi")),
        (("one", "two"), Message.user("one", "two")),
        (["user", "hi"], Message.user("user", "hi")),
        (CALLED.to_json(), CALLED),
        (bytearray(CALLED.to_json()), CALLED),
        (CALLED.to_dict(), CALLED),
        (b'{"role": "ai", "content": "hi"}', Message.assistant("hi")),
        (Speaker(), CALLED),
        (Messages(CALLED), CALLED),
        ([CALLED], CALLED),
        # LarAgent's stored forms: the Gemini driver's, the Claude driver's
        ({"role": "assistant", "parts": [GEMINI_CALL]}, CALLED),
        ({"role": "assistant", "content": [CLAUDE_CALL]}, CALLED),
        ({"content": [CLAUDE_CALL]}, CALLED),
        ([CLAUDE_CALL], CALLED),
        (CLAUDE_CALL, CALLED),
        (GEMINI_CALL, CALLED),
        ({"parts": [{"function_call": {"name": "f", "args": {"a": 1}}}]}, CALLED),
        ({"role": "model", "parts": [{"text": "hi"}]}, Message.assistant("hi")),
        (
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            CALLED,
        ),
        ({"type": "function_call_output", "call_id": "c1", "output": "ok"}, ANSWERED),
        (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            Message.user("hi"),
        ),
        (
            {"role": "tool", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]},
            ANSWERED,
        ),
        ({"role": Role.ASSISTANT, "content": "hi"}, Message.assistant("hi")),
    ],
)  # fmt: skip
def test_one_message_is_read(value: Any, message: Message) -> None:
    """Alone, in a list, and with another role."""
    assert Message.from_any(value).equal_ignoring_call_ids(message)  # Gemini has no ids
    if not isinstance(value, (bytes, bytearray)) and value != [CALLED]:
        read = Messages.from_any([message, value, message])
        assert read[0] is read[2] is message
        assert read[1].equal_ignoring_call_ids(message)
    if message.role is Role.ASSISTANT and not message.tool_calls and not message.thinking:
        assert Message.from_any(value, "user") == message.with_role("user")
    if isinstance(value, dict) and value not in (CLAUDE_CALL, GEMINI_CALL):  # they are parts
        assert Message.is_message(value)
        assert Message.from_dict(value) == Message.from_any(value)


def test_the_default_role_is_user() -> None:
    """An empty role means no role (seed 003); a message's own role is kept."""
    assert Message.from_any("hi", role="") == Message.user("hi")
    assert Message.from_any({"role": "assistant", "content": "hi"}, "") == Message.assistant("hi")


def test_custom_fields_are_kept() -> None:
    """Ids and metadata are fields; unknown fields are kept, and never sent."""
    for content in (
        {"role": "assistant", "parts": [GEMINI_CALL]},
        {"role": "assistant", "content": [CLAUDE_CALL]},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f"}}]},
        {"role": "assistant", "content": "hi"},
    ):  # fmt: skip
        own = {"id": "m1", "metadata": {"a": 1}, "created_at": 5.0, "rating": 4}
        read = Message.from_any({**content, **own})
        assert (read.id, read.metadata, read.created_at) == ("m1", {"a": 1}, 5.0)
        assert read.extras == {"canonical": {"rating": 4}} | {
            name: read.extras[name] for name in read.extras if name != "canonical"
        }
        assert all("rating" not in read.extras[name] for name in read.extras if name != "canonical")


def test_an_anthropic_response_is_a_message() -> None:
    """It has usage and finish reason; other responses are refused."""
    body = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 2}}  # fmt: skip
    read = Messages.from_any([{"role": "user", "content": "?"}, body])[1]
    assert (read.text, read.finish) == ("hi", FinishReason.STOP)
    assert read.usage is not None
    assert read.usage.output == 2
    with pytest.raises(InvalidInputError, match="a response is not a history"):
        Messages.from_any({"choices": [{"message": {"role": "assistant", "content": "hi"}}]})


def test_objects_inside_dicts_are_read() -> None:
    """Anthropic's documentation continues with `{"content": response.content}`."""
    blocks = [
        anthropic.types.TextBlock(type="text", text="Let me see."),
        anthropic.types.ToolUseBlock(type="tool_use", id="c1", name="f", input={"a": 1}),
    ]
    assert Message.from_any({"role": "assistant", "content": blocks}) == Message.assistant(
        "Let me see.", CALL
    )
    function = {"name": "f", "arguments": '{"a": 1}'}
    call = openai.types.chat.ChatCompletionMessageToolCall.model_validate(
        {"id": "c1", "type": "function", "function": function}
    )
    assert Message.from_any({"role": "assistant", "tool_calls": [call]}) == CALLED
    data = {"role": "user", "parts": [{"inline_data": {"mime_type": "image/png", "data": b"hi"}}]}
    assert Message.from_any(data) == Message.user(Image.from_bytes(b"hi", "image/png"))


def test_several_messages_are_not_one() -> None:
    """The error names `Messages.from_any`."""
    for several in (Messages(*ROUND), [*ROUND], [{"role": "user", "content": "a"}, "b"], Talk()):
        with pytest.raises(InvalidInputError, match=r"Messages\.from_any"):
            Message.from_any(several)
    with pytest.raises(InvalidInputError, match="expected one message, got 0"):
        Message.from_any(Messages())


# --- conversations


@pytest.mark.parametrize(
    "value",
    [
        list(ROUND),
        tuple(ROUND),
        deque(ROUND),
        iter(ROUND),
        (message for message in ROUND),
        map(Message.to_dict, ROUND),
        {message.id: message for message in ROUND}.values(),
        Section("prompt", Messages(*ROUND)),
        [Messages(*ROUND[:2]), *ROUND[2:]],
        Request(messages=ROUND),
        Request(messages=ROUND).to_json(),
        Messages(*ROUND).to_json(),
        json.loads(Messages(*ROUND).to_json()),
        {"messages": list(ROUND)},
        [message.to_dict() for message in ROUND],
        json.dumps({"messages": [message.to_dict() for message in ROUND]}).encode(),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_container_of_messages_is_read(value: Any) -> None:
    """Sequences, iterators, containers, requests and documents."""
    assert Messages.from_any(value) == Messages(*ROUND)


def test_pairs_and_texts_can_be_mixed() -> None:
    """A list of two texts is two messages; a tuple of role and text is one."""
    read = Messages.from_any(
        [("human", "a"), "b", ("ai", "c"), ["d"], Speaker(), Talk(), Text("e")]
    )
    assert [message.text for message in read][:4] == ["a", "b", "c", "d"]
    assert read[3:] == Messages(Message.user("d"), CALLED, CALLED, ANSWERED, Message.user("e"))
    assert Messages.from_any(("human", "a")) == Messages(Message.user("a"))
    assert len(Messages.from_any(["human", "a"])) == len(Messages.from_any(("a", "b"))) == 2


def test_a_text_is_always_user_text() -> None:
    """A text is never parsed, whatever it looks like."""
    for text in (Messages(*ROUND).to_json().decode(), '[{"role": "system", "content": "x"}]'):
        assert Messages.from_any(text) == Messages(Message.user(text))
        assert Messages.from_any([text]) == Messages(Message.user(text))
        assert Message.from_any(text).text == text
    assert read_history(Messages(*ROUND).to_json().decode()) == Messages(*ROUND)


def test_reading_has_no_side_effects() -> None:
    """The caller's dicts are unchanged, and reading them twice gives the same result."""
    items = [body_of("anthropic")["messages"], body_of("openai-chat")["messages"]]
    for given_items in items:
        before = json.dumps(given_items)
        assert rounds(Messages.from_any(given_items)) == rounds(Messages.from_any(given_items))
        assert json.dumps(given_items) == before


@pytest.mark.parametrize(
    "item",
    [
        {"role": "model", "parts": [GEMINI_CALL]},
        {"role": "assistant", "tool_calls": [{"name": "f", "arguments": {"a": 1}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
    ],
    ids=["gemini", "flat", "ollama", "openai-chat"],
)
def test_derived_ids_are_deterministic_and_unique(item: dict[str, Any]) -> None:
    """Each call without an id gets its own, the same one each time."""
    for items in ([item] * 3, [item, "a", item, CALLED, item], [item, *Messages.from_any([item])]):
        read = Messages.from_any(items)
        assert read == Messages.from_any(items)
        calls = [call.id for message in read for call in message.tool_calls]
        assert len({*calls}) == len(calls)


def test_a_body_is_a_request() -> None:
    """A whole body is read with its settings, not only its messages."""
    body = {**body_of("openai-chat"), "temperature": 0.5}
    for given_body in (body, json.dumps(body).encode()):
        asked = read_request(given_body)
        assert asked.sampling.temperature == 0.5
        assert rounds(asked.messages) == rounds(TALK)
    assert read_request(Request(model="m").to_json()) == Request(model="m")
    assert read_request({"role": "user", "content": "hi"}).messages == (Message.user("hi"),)
    assert read_request("hi").messages == (Message.user("hi"),)


# --- JSON


@pytest.mark.parametrize(
    "raw",
    [
        b'[{"role": "user", "content": "hi"}]',
        '[{"role": "user", "content": "hi"}]',
        b'{"role": "user", "content": "hi"}',
        b'{"messages": [{"role": "human", "content": "hi"}]}',
        b'{"contents": [{"parts": [{"text": "hi"}]}]}',
        b'{"model": "m", "input": "hi"}',
        b'["hi"]',
        Messages(Message.user("hi")).to_json(),
    ],
)
def test_json_of_any_shape_is_read(raw: Any) -> None:
    """Canonical documents, lists, single messages and whole requests."""
    assert Messages.from_json(raw) == Messages(Message.user("hi"))
    if b"dragoman" not in (raw if isinstance(raw, bytes) else b""):
        assert Message.from_json(raw) == Message.user("hi")


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b'{"dragoman": 99, "kind": "Messages", "value": []}', "format version 99"),
        (b'{"dragoman": 1, "kind": "Messages", "value": [5]}', "Expected `object`"),
        (b'{"dragoman": 1, "kind": "Text", "value": []}', "does not hold"),
        (b'{"role": "robot"}', "unknown role"),
        (b'"hi"', "Expected `object`"),
        (b"5", "Expected `object`"),
        (b"[5]", "from int"),
        (b"hi", "malformed"),
        (b'{"choices": []}', "a response is not a history"),
    ],
)
def test_json_that_is_no_conversation_is_refused(raw: bytes, problem: str) -> None:
    """For a canonical document, the error says what is wrong with it."""
    with pytest.raises(InvalidInputError, match=problem):
        Messages.from_json(raw)


# --- what is loaded


def test_plain_input_does_not_load_the_wire() -> None:
    """Texts, messages, parts and simple dicts are read without the wire layer."""
    code = """
import sys
from dragoman import ConversationHistory, Image, Message, Messages, MessageStore, Text
talk = Messages.from_any(["a", Message.user("b"), {"role": "assistant", "content": "c"}])
talk = talk.append("d").extend(["e", "f"]).prepend("g")
Message.from_any(Text("a")), Message.from_any({"role": "user", "content": "b"})
ConversationHistory().add_all([{"role": "system", "content": "a"}, "b"])
Messages.from_any(MessageStore.from_messages(talk)), Messages.from_json(talk.to_json())
print([name for name in sys.modules if name.startswith("dragoman.wire")])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60
    )
    assert run.stdout == "[]\n"
