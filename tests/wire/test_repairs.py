"""Bodies round-trip unchanged in their own dialect, and every change is reported."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dragoman
from dragoman import Message, Repair, Request, Role, Text, ToolCall, ToolResult
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.turns import OPENING
from tests.corpus import Corpus
from tests.wire.recorded import ENDPOINTS, SPOKEN_BY, normal

OK = 200
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
SHELL = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "status": "completed",
         "action": {"type": "exec", "command": ["ls"], "env": {}}}  # fmt: skip
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": "hi", "annotations": []}]}  # fmt: skip
OUTPUT = {"type": "function_call_output", "call_id": "c", "output": "x"}
USE = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
ASKED = {"role": "user", "parts": [{"text": "x"}]}
CALLED = {"functionCall": {"name": "f", "args": {}}}
ANSWERED = {"functionResponse": {"name": "f", "response": {"a": 1}}}

# Failures found with bodies that were not in the corpus, one of each class.
UNSEEN: list[tuple[str, dict[str, Any]]] = [
    ("openai-responses", {"input": [{"type": "item_reference", "id": "fc_1"}, OUTPUT]}),
    ("openai-responses", {"input": [{"id": "fc_1"}, OUTPUT]}),
    ("openai-responses", {"input": [{"type": "compaction", "encrypted_content": "z"}, OUTPUT]}),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}, "input": [OUTPUT]}),
    ("openai-responses", {"input": [{"type": "mcp_approval_response", "approve": True,
                                     "approval_request_id": "mcpr_1"}]}),
    ("openai-responses", {"store": False, "input": [
        {"role": "user", "content": "q"},
        {"type": "reasoning", "encrypted_content": "a", "summary": []}, SAID,
        {"role": "user", "content": "q"}]}),
    ("openai-responses", {"input": [SHELL, {"type": "local_shell_call_output", "id": "o",
                                            "call_id": "c", "output": "x"}]}),
    ("openai-responses", {"input": [SHELL, OUTPUT]}),
    ("openai-responses", {"input": [], "max_output_tokens": 1}),
    ("openai-chat", {"messages": [{"role": "tool", "tool_call_id": "c" * 60, "content": "x"}]}),
    ("openai-chat", {"messages": [{"role": "user", "content": "x"},
                                  {"role": "assistant", "tool_calls": [CALL]},
                                  {"role": "tool", "content": "sunny"}]}),
    ("openai-chat", {"model": "gpt-5", "messages": [{"role": "user", "content": "x"}], "tools": [
        {"type": "function", "function": {"name": "bad name!", "strict": True, "parameters": {
            "type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}}}}]}),
    ("anthropic", {"messages": [{"role": "user", "content": "x"}]}),
    ("anthropic", {"max_tokens": 5, "messages": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [{"type": "text", "text": " "}, USE]},
        {"role": "user", "content": [RESULT]}]}),
    ("anthropic", {"max_tokens": 5, "thread": {"id": "th"},
                   "messages": [{"role": "user", "content": [RESULT]}]}),
    ("gemini", {"contents": [{"role": "model", "parts": [{"text": "hi"}]}, ASKED,
                             {"role": "model", "parts": [{"text": "y"}]}]}),
    ("gemini", {"contents": [ASKED, {"role": "model", "parts": [CALLED, CALLED]},
                             {"role": "user", "parts": [ANSWERED]},
                             {"role": "user", "parts": [ANSWERED]}]}),
    ("gemini", {"cachedContent": "c/1", "contents": [{"role": "user", "parts": [ANSWERED]}]}),
    ("gemini", {"contents": [ASKED], "toolConfig": {"functionCallingConfig": {"mode": "NONE"}}}),
    ("gemini", {"contents": [ASKED, {"role": "model", "parts": [CALLED]},
                             {"role": "user", "parts": [{"text": "and"}, {"functionResponse": {
                                 "name": "g", "response": {"a": 1}}}]}]}),
    ("ollama", {"model": "m", "messages": [
        {"role": "tool", "content": "y"},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f",
                                                                          "arguments": {}}}]}]}),
]  # fmt: skip


def again(name: str, body: dict[str, Any]) -> Encoded:
    """A body, decoded and encoded in its own dialect."""
    speaker = dragoman.dialect(name)
    return speaker.encode_request(speaker.decode_request(body))


def sent(encoded: Encoded) -> Any:
    """The body as its recipient reads it."""
    return json.loads(encoded.to_bytes())


@pytest.mark.parametrize(("name", "body"), UNSEEN)
def test_odd_bodies_round_trip(name: str, body: dict[str, Any]) -> None:
    """For an unknown host, a body is unchanged, even if it breaks a rule."""
    encoded = again(name, body)
    assert sent(encoded) == body
    assert (encoded.losses, encoded.repairs) == ((), ())


@pytest.mark.parametrize(("name", "body"), [row for row in UNSEEN if row[1].get("input") != []])
def test_original_messages_are_unchanged_beside_added_ones(name: str, body: dict[str, Any]) -> None:
    """An added message is fitted, and those before it are sent unchanged."""
    speaker = dragoman.dialect(name)
    request = speaker.decode_request(body)
    longer = request.replace(messages=(*request.messages, Message.user("more")))
    found = sent(speaker.encode_request(longer))[speaker.messages_field]
    assert found[: len(request.messages)] == body[speaker.messages_field][: len(request.messages)]
    assert "more" in json.dumps(found[-1])


@pytest.mark.corpus
@pytest.mark.parametrize("name", dragoman.dialects())
def test_recorded_requests_round_trip(corpus: Corpus, name: str) -> None:
    """Accepted or refused, they are unchanged, also with an added message."""
    speaker = dragoman.dialect(name)
    count = 0
    for recording in corpus.select(provider_api=SPOKEN_BY[name]):
        path, body = recording.request_path, recording.request_body
        is_one = ENDPOINTS[name].search(path.partition("?")[0]) and isinstance(body, dict)
        if not is_one or not isinstance(body.get(speaker.messages_field), (list, str)):
            continue
        if recording.row.status != OK and not all(
            isinstance(item, dict) for item in body[speaker.messages_field]
        ):
            continue  # a message that is not an object was refused
        request = speaker.decode_request(body, path=path)
        encoded = speaker.encode_request(request)
        assert normal(sent(encoded)) == normal(body), recording.row.file
        longer = request.replace(messages=(*request.messages, Message.user("more")))
        before = normal(body)[speaker.messages_field]
        found = normal(sent(speaker.encode_request(longer)))[speaker.messages_field]
        if isinstance(before, list):
            assert found[:-1] == before, recording.row.file
        count += 1
    assert count


def test_requests_are_fitted_for_a_named_target() -> None:
    """The target's refusals are known, and repairs are reported."""
    body = {"messages": [{"role": "user", "content": "x"},
                         {"role": "assistant", "tool_calls": [CALL]},
                         {"role": "user", "content": "Hello?"}]}  # fmt: skip
    encoded = dragoman.translate(body, source="openai-chat", target="openai:gpt-4o")
    assert [message["role"] for message in encoded.body["messages"]] == [
        "user", "assistant", "tool", "user",
    ]  # fmt: skip
    assert [(each.path, each.rule, each.action) for each in encoded.repairs] == [
        ("messages[1].parts[0]", "I9", "added")
    ]


def test_an_edited_message_is_fitted() -> None:
    """An edited message no longer counts as an unchanged one of the dialect."""
    speaker = dragoman.dialect("gemini")
    body = {"contents": [{"role": "model", "parts": [CALLED]}, ASKED]}
    message, question = speaker.decode_request(body).messages
    assert speaker.target.owns(message)
    edited = message.replace(parts=(Text("Hello"), *message.parts))
    assert not speaker.target.owns(edited)
    encoded = speaker.encode_request(Request(messages=(edited, question)))
    assert encoded.body["contents"][0] == {"role": "user", "parts": [{"text": OPENING}]}
    reason = "the first message must be a user message"
    assert Repair("messages", "W47", "added", reason) in encoded.repairs


@pytest.mark.parametrize("name", dragoman.dialects())
def test_repair_can_be_turned_off(name: str) -> None:
    """`repair=False` adds no placeholder, and moves or renames nothing."""
    call = ToolCall("call_1", "f", {"a": 1})
    torn = (Message.assistant(tool_calls=[call]), Message.user("Hello?"), Message.assistant(" "))
    encoded = dragoman.dialect(name).encode_request(Request(messages=torn), repair=False)
    assert encoded.repairs == ()
    assert "unknown" not in encoded.to_bytes().decode()
    assert len(encoded.body[dragoman.dialect(name).messages_field]) == 3


@pytest.mark.parametrize("name", dragoman.dialects())
def test_results_are_matched_before_placeholders_are_added(name: str) -> None:
    """Results are matched by id, else by tool name, else by position."""
    calls = [ToolCall("a", "f", {}), ToolCall("b", "g", {})]
    results = (ToolResult("x", "of g", tool_name="g"), ToolResult("y", "of f"))
    messages = (
        Message.user("Hi"), Message.assistant(tool_calls=calls),
        Message.tool(*results), Message.user("And?"),
    )  # fmt: skip
    speaker = dragoman.dialect(name)
    encoded = speaker.encode_request(Request(messages=messages), speaker.target)
    text = encoded.to_bytes().decode()
    assert "of f" in text
    assert "of g" in text
    assert "outcome is unknown" not in text or not speaker.target.turns.pairs_results


def test_a_result_without_any_call_is_carried_as_text() -> None:
    """The text is not lost, and the list of messages is never empty."""
    request = Request(messages=(Message.tool("call_9", "forty-two"),))
    for name in dragoman.dialects():
        speaker = dragoman.dialect(name)
        encoded = speaker.encode_request(request, speaker.target)
        assert "forty-two" in encoded.to_bytes().decode()
        assert encoded.body[speaker.messages_field]


def test_original_messages_keep_their_names_and_ids() -> None:
    """A too long id and an invalid name stay in the messages that came with them."""
    long = "c" * 90
    call = {"id": long, "type": "function", "function": {"name": "mcp.read", "arguments": "{}"}}
    body = {"messages": [{"role": "user", "content": "x"},
                         {"role": "assistant", "tool_calls": [call]},
                         {"role": "tool", "tool_call_id": long, "content": "y"}]}  # fmt: skip
    speaker = dragoman.dialect("openai-chat")
    request = speaker.decode_request(body)
    added = (Message.assistant("z"), Message(Role.USER, (Text("more"),)))
    encoded = speaker.encode_request(request.replace(messages=(*request.messages, *added)))
    assert sent(encoded)["messages"][:3] == body["messages"]
