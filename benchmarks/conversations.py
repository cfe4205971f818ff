"""The same conversation for every library: 1,000 messages, a tool round in every four."""

from __future__ import annotations

import json
from typing import Any

from dragoman import Message, Messages, ToolCall

ROUNDS = 250


def _question(n: int) -> str:
    return f"What is the weather in city number {n}, and should I take an umbrella with me today?"


def _arguments(n: int) -> dict[str, Any]:
    return {"city": f"City {n}", "unit": "celsius"}


def _result(n: int) -> str:
    return json.dumps({"temperature": n % 40, "sky": "clear", "humidity": 40 + n % 50})


def _answer(n: int) -> str:
    return (
        f"It is {n % 40} degrees in city number {n} and the sky is clear, so you can leave the"
        " umbrella at home. Take a hat if you stay out for long."
    )


def chat(rounds: int = ROUNDS) -> dict[str, Any]:
    """As the body of an OpenAI Chat request, four messages a round."""
    messages: list[dict[str, Any]] = []
    for n in range(rounds):
        function = {"name": "weather", "arguments": json.dumps(_arguments(n))}
        call = {"id": f"call_{n:024}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": _question(n)},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call["id"], "content": _result(n)},
            {"role": "assistant", "content": _answer(n)},
        ]
    properties = {"city": {"type": "string"}, "unit": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": ["city", "unit"]}
    tool = {"name": "weather", "description": "The weather in a city.", "parameters": schema}
    return {
        "model": "gpt-5.1",
        "messages": [*messages, {"role": "user", "content": "Thank you. And tomorrow?"}],
        "tools": [{"type": "function", "function": tool}],
        "max_completion_tokens": 1000,
    }


def body(rounds: int = ROUNDS) -> bytes:
    """The same as bytes, written as compactly as SDKs do."""
    return json.dumps(chat(rounds), separators=(",", ":")).encode()


def is_whole(raw: bytes, rounds: int = ROUNDS) -> bool:
    """Whether a body, in whatever dialect, has all of the questions, calls, results and answers."""
    texts = [text(n).encode() for n in range(rounds) for text in (_question, _answer)]
    return (
        all(text in raw for text in texts)
        and raw.count(b"City ") == rounds
        and raw.count(b"humidity") == rounds
    )


def ours() -> Messages:
    """As Dragoman's messages."""
    messages: list[Message] = []
    for n in range(ROUNDS):
        call = ToolCall.create(f"call_{n}", "weather", json.dumps(_arguments(n)))
        messages += [
            Message.user(_question(n)),
            Message.assistant(tool_calls=[call]),
            Message.tool(f"call_{n}", _result(n), tool_name="weather"),
            Message.assistant(_answer(n)),
        ]
    return Messages(*messages)


def pydantic_ai() -> Any:
    """As pydantic-ai's messages."""
    from pydantic_ai import messages as peer

    history: list[Any] = []
    for n in range(ROUNDS):
        call = peer.ToolCallPart("weather", json.dumps(_arguments(n)), f"call_{n}")
        returned = peer.ToolReturnPart("weather", _result(n), f"call_{n}")
        history += [
            peer.ModelRequest(parts=[peer.UserPromptPart(_question(n))]),
            peer.ModelResponse(parts=[call]),
            peer.ModelRequest(parts=[returned]),
            peer.ModelResponse(parts=[peer.TextPart(_answer(n))]),
        ]
    return history


def langchain() -> Any:
    """As langchain-core's messages."""
    from langchain_core import messages as peer

    history: list[Any] = []
    for n in range(ROUNDS):
        call = {"name": "weather", "args": _arguments(n), "id": f"call_{n}"}
        history += [
            peer.HumanMessage(_question(n)),
            peer.AIMessage("", tool_calls=[call]),
            peer.ToolMessage(_result(n), tool_call_id=f"call_{n}", name="weather"),
            peer.AIMessage(_answer(n)),
        ]
    return history
