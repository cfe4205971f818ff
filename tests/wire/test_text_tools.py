"""Free-text tools at targets whose tools take objects, in both directions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Front, Request, ToolCall, ToolDefinition
from dragoman.model.usage import FinishReason
from dragoman.providers.registry import provider
from dragoman.wire.encoded import Encoded
from tests.gateway.answers import body_of, frames_of, said

PATCH = '*** Begin Patch\n+"Mostar" \\ Ćuprija\n*** End Patch'
BACKS = {"anthropic": "anthropic", "gemini": "google", "ollama": "ollama",
         "openai-chat": "openai-compatible"}  # fmt: skip
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
TOOL = {"type": "custom", "name": "apply_patch", "description": "Edits.", "format": GRAMMAR}


def asked(*items: Any) -> Request:
    """Codex's request, with its tool for edits."""
    body = {"model": "m", "store": False, "stream": True, "tools": [TOOL],
            "input": [{"role": "user", "content": "Edit."}, *items]}  # fmt: skip
    return dragoman.dialect("openai-responses").decode_request(body)


def encoded_for(back: str, request: Request) -> Encoded:
    """The request encoded for a host of that dialect."""
    target = provider(BACKS[back]).target("m", back)
    return dragoman.dialect(back).encode_request(request, target)


def answered(arguments: str) -> Any:
    """A model's call of the tool, as a function."""
    call = ToolCall("call_1", "apply_patch", arguments)
    return said(call, finish=FinishReason.TOOL_CALLS)


def streamed(back: str, arguments: str, size: int) -> list[Any]:
    """The stream that a Responses client gets, for the model's bytes in pieces."""
    request = asked()
    decoder = dragoman.dialect(back).stream_decoder(encoded_for(back, request).context)
    raw = b"".join(frames_of(back, answered(arguments)))
    encoder = Front("openai-responses", request).stream()
    written = b"".join(
        encoder.feed_all(decoder.feed(raw[at : at + size])) for at in range(0, len(raw), size)
    )
    written += encoder.feed_all(decoder.close()) + encoder.close()
    return [json.loads(line[6:]) for line in written.splitlines() if line.startswith(b"data: ")]


def call_in(events: list[Any], state: str) -> Any:
    """The one call that the client gets; Ollama's has its state in an item beside it."""
    name = f"response.output_item.{state}"
    items = [event["item"] for event in events if event["type"] == name]
    [call] = [item for item in items if item["type"] != "reasoning"]
    return call


@pytest.mark.parametrize("back", BACKS)
def test_a_text_tool_becomes_a_function(back: str) -> None:
    """It has one argument, and the loss of its grammar is reported."""
    encoded = encoded_for(back, asked())
    [tool] = dragoman.dialect(back).decode_request(encoded.to_bytes()).tools
    assert isinstance(tool, ToolDefinition)
    assert (tool.name, tool.kind) == ("apply_patch", "function")
    assert list((tool.parameters or {})["properties"]) == ["input"]
    assert "tools[0]" in {loss.path for loss in encoded.losses}


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("arguments", [{"input": PATCH}, {"input": ""}])
def test_its_call_is_restored_as_text(back: str, arguments: dict[str, str]) -> None:
    """The call is a custom call with the text of the argument."""
    context = encoded_for(back, asked()).context
    body = body_of(back, answered(json.dumps(arguments)))
    [call] = dragoman.dialect(back).decode_response(body, context).message.tool_calls
    assert (call.kind, call.raw_arguments) == ("custom", arguments["input"])


@pytest.mark.parametrize("back", BACKS)
@given(text=st.one_of(st.just(PATCH), st.text()), size=st.integers(1, 400))
def test_its_streamed_call_is_restored_as_text(back: str, text: str, size: int) -> None:
    """For any chunks, the item, its deltas and its end have the same text."""
    events = streamed(back, json.dumps({"input": text}), size)
    item = call_in(events, "done")
    assert (item["type"], item["input"]) == ("custom_tool_call", text)
    assert call_in(events, "added")["type"] == "custom_tool_call"
    kind = "response.custom_tool_call_input.delta"
    assert "".join(e["delta"] for e in events if e["type"] == kind) == text
    assert events[-1]["type"] == "response.completed"


@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("arguments", ['{"input": 5}', '{"patch": "x"}', '{"input": "a", "b": 1}'])
def test_unexpected_arguments_are_kept(back: str, arguments: str) -> None:
    """Arguments of another form are passed on as JSON text for the tool to refuse."""
    events = streamed(back, arguments, 7)
    item = call_in(events, "done")
    assert item["type"] == "custom_tool_call"
    assert json.loads(item["input"]) == json.loads(arguments)


@pytest.mark.parametrize("back", BACKS)
def test_earlier_calls_become_functions(back: str) -> None:
    """Calls and results of the history have the same form as the declared tool."""
    call = {"type": "custom_tool_call", "call_id": "call_1", "name": "apply_patch", "input": PATCH}
    result = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "Done"}
    body = encoded_for(back, asked(call, result)).to_bytes()
    decoded = dragoman.dialect(back).decode_request(body)
    [sent] = [each for message in decoded.messages for each in message.tool_calls]
    assert (sent.kind, sent.arguments) == ("function", {"input": PATCH})


@pytest.mark.parametrize("name", ["openai-chat", "openai-responses"])
def test_it_is_unchanged_at_openai(name: str) -> None:
    """OpenAI has such tools."""
    target = provider("openai").target("gpt-5", name)
    encoded = dragoman.dialect(name).encode_request(asked(), target)
    assert not encoded.losses or name == "openai-chat"
    assert json.loads(encoded.to_bytes())["tools"][0]["type"] == "custom"
    assert not encoded.context.undos
