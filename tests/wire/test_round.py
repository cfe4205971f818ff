"""One conversation through all dialects, a turn in each, twice; every loss is reported.

Every turn has an image, sealed thinking, text, two parallel calls, a result and a failure. `Owner`
keeps the conversation itself, as our users do; `Traveller` keeps only the last body that was sent,
as a chain of proxies would.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import dragoman
from dragoman import (
    Image,
    Loss,
    Message,
    Request,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolDefinition,
    ToolResult,
)
from dragoman.model.content import AnyPart

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
SEAL = "c2VhbGVkIGJ5IHRoZSBwcm92aWRlcg=="
TOOLS = tuple(
    ToolDefinition(
        name,
        f"Tell the {name} of a city.",
        {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )
    for name in ("weather", "time_of_day")
)
ORDER = tuple(dragoman.dialects())
TURNS = tuple(enumerate(ORDER * 2))


class Said:
    """The content of one turn."""

    def __init__(self, turn: int) -> None:
        self.question = f"Question {turn}, with a picture"
        self.thought = f"Thought {turn}"
        self.text = f"Let me look, {turn}."
        self.calls = {"weather": {"city": f"Basel {turn}"}, "time_of_day": {"city": f"Bern {turn}"}}
        self.result = f"sunny {turn}"
        self.failure = f"the clock of {turn} is broken"
        self.answer = f"Answer {turn}."


def _chat(turn: int, said: Said | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": Said(turn).answer}
    if said:
        message["content"], message["reasoning_content"] = said.text, said.thought
        message["tool_calls"] = [
            {"id": f"call_{turn}_{name}", "type": "function",
             "function": {"name": name, "arguments": json.dumps(arguments)}}
            for name, arguments in said.calls.items()
        ]  # fmt: skip
    finish = "tool_calls" if said else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": f"c{turn}", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice]}  # fmt: skip


def _anthropic(turn: int, said: Said | None) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": Said(turn).answer}]
    if said:
        content = [
            {"type": "thinking", "thinking": said.thought, "signature": SEAL},
            {"type": "text", "text": said.text},
            *({"type": "tool_use", "id": f"toolu_{turn}_{name}", "name": name, "input": arguments}
              for name, arguments in said.calls.items()),
        ]  # fmt: skip
    return {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m",
            "content": content, "stop_reason": "tool_use" if said else "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip


def _responses(turn: int, said: Said | None) -> dict[str, Any]:
    def message(text: str) -> dict[str, Any]:
        content = {"type": "output_text", "text": text, "annotations": []}
        return {"type": "message", "id": f"msg_{turn}", "role": "assistant",
                "status": "completed", "content": [content]}  # fmt: skip

    output = [message(Said(turn).answer)]
    if said:
        thought = {"type": "summary_text", "text": said.thought}
        output = [
            {"type": "reasoning", "id": f"rs_{turn}", "summary": [thought],
             "encrypted_content": SEAL},
            message(said.text),
            *({"type": "function_call", "id": f"fc_{turn}_{name}", "call_id": f"call_{turn}_{name}",
               "name": name, "arguments": json.dumps(arguments), "status": "completed"}
              for name, arguments in said.calls.items()),
        ]  # fmt: skip
    return {"id": f"resp_{turn}", "object": "response", "created_at": 1, "model": "m",
            "status": "completed", "output": output}  # fmt: skip


def _gemini(turn: int, said: Said | None) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": Said(turn).answer}]
    if said:
        calls = [{"functionCall": {"name": n, "args": a}} for n, a in said.calls.items()]
        calls[0]["thoughtSignature"] = SEAL  # type: ignore[assignment]  # beside the call (W83)
        parts = [{"text": said.thought, "thought": True}, {"text": said.text}, *calls]
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
            "modelVersion": "m", "responseId": f"g{turn}"}  # fmt: skip


def _ollama(turn: int, said: Said | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": Said(turn).answer}
    if said:
        message["content"], message["thinking"] = said.text, said.thought
        message["tool_calls"] = [
            {"function": {"name": n, "arguments": a}} for n, a in said.calls.items()
        ]
    return {"model": "m", "created_at": "2026-01-01T00:00:00.5Z", "message": message,
            "done": True, "done_reason": "stop"}  # fmt: skip


ANSWERS: dict[str, Callable[[int, Said | None], dict[str, Any]]] = {
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
    "openai-chat": _chat,
    "openai-responses": _responses,
}


class Owner:
    """Keeps the conversation, and sends all of it to each provider."""

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.losses: list[Loss] = []

    def asked(self, dialect: str) -> Request:
        """The request as the provider decodes it; it breaks no rule."""
        speaker: Any = dragoman.dialect(dialect)
        encoded = speaker.encode_request(Request(model="m", messages=self.messages, tools=TOOLS))
        errors = [found for found in speaker.check(encoded.body) if found.severity == "error"]
        assert errors == []
        self.losses += encoded.losses
        read: Request = speaker.decode_request(encoded.to_bytes(), path=encoded.path)
        return read

    def hear(self, dialect: str, answer: dict[str, Any]) -> Message:
        """Add the provider's answer to the conversation."""
        message = dragoman.dialect(dialect).decode_response(answer).message
        self.messages += (message,)
        return message

    def turn(self, number: int, dialect: str) -> None:
        """A question, an answer with calls, their results, and the final answer."""
        said, answered = Said(number), ANSWERS[dialect]
        self.messages += (Message.user(said.question, Image.from_base64(PIXEL, "image/png")),)
        self.asked(dialect)
        first, second = self.hear(dialect, answered(number, said)).tool_calls
        self.messages += (
            Message(
                Role.TOOL,
                (
                    ToolResult(first.id, said.result, tool_name=first.name),
                    ToolResult(second.id, said.failure, tool_name=second.name, is_error=True),
                ),
            ),
        )
        self.asked(dialect)
        self.hear(dialect, answered(number, None))


class Traveller(Owner):
    """Keeps only what the last provider was sent."""

    def asked(self, dialect: str) -> Request:
        """Keep only what was sent."""
        read = super().asked(dialect)
        self.messages = read.messages
        return read


def _parts(messages: tuple[Message, ...]) -> list[AnyPart]:
    return [part for message in messages for part in message.parts]


def _missing(messages: tuple[Message, ...]) -> list[str]:
    """The content of any turn that is missing."""
    parts = _parts(messages)
    texts = "\n".join(part.text for part in parts if isinstance(part, Text))
    calls = [(part.name, part.arguments) for part in parts if isinstance(part, ToolCall)]
    results = {part.call_id: part for part in parts if isinstance(part, ToolResult)}
    outcomes = "\n".join(result.text for result in results.values())
    missing = []
    for number, _ in TURNS:
        said = Said(number)
        missing += [text for text in (said.question, said.text, said.answer) if text not in texts]
        missing += [text for text in (said.result, said.failure) if text not in outcomes]
        missing += [f"{name} {number}" for name, a in said.calls.items() if (name, a) not in calls]
    images = [part for part in parts if isinstance(part, Image)]
    if len(images) != len(TURNS) or any(image.data != PIXEL for image in images):
        missing.append("images")
    called = [part.id for part in parts if isinstance(part, ToolCall)]
    if sorted(results) != sorted(called):
        missing.append("pairs")
    return missing


@pytest.mark.parametrize("keeper", [Owner, Traveller])
def test_a_conversation_through_all_dialects_twice(keeper: type[Owner]) -> None:
    """Every text, call, result and image of ten turns is there at the end."""
    assert set(ANSWERS) == set(ORDER)
    conversation = keeper()
    for number, dialect in TURNS:
        conversation.turn(number, dialect)
    assert _missing(conversation.messages) == []
    for dialect in ORDER:
        again = keeper()
        again.messages = conversation.messages
        assert _missing(again.asked(dialect).messages) == []


def test_missing_thinking_is_reported() -> None:
    """Thinking is sent to its own provider, and is a loss for every other."""
    owner = Owner()
    for number, dialect in TURNS:
        owner.turn(number, dialect)
    failures = [p for p in _parts(owner.messages) if isinstance(p, ToolResult) and p.is_error]
    assert len(failures) == len(TURNS)
    thoughts = [part for part in _parts(owner.messages) if isinstance(part, Thinking)]
    assert [part.text for part in thoughts] == [Said(number).thought for number, _ in TURNS]
    for dialect in ORDER:
        owner.losses.clear()
        arrived = _parts(owner.asked(dialect).messages)
        own = [f"Thought {number}" for number, name in TURNS if name == dialect]
        assert [part.text for part in arrived if isinstance(part, Thinking)] == own
        told = [loss.path for loss in owner.losses]
        for index, message in enumerate(owner.messages):
            for place, part in enumerate(message.parts):
                path = f"messages[{index}].parts[{place}]"
                if isinstance(part, Thinking) and part.text not in own:
                    assert path in told
        failed = [part for part in arrived if isinstance(part, ToolResult) and part.is_error]
        if len(failed) != len(TURNS):
            assert sum(path.endswith("is_error") for path in told) == len(TURNS) - len(failed)


def test_losses_of_a_traveller_are_reported() -> None:
    """Between dialects without support, thinking is lost for good, but reported."""
    traveller = Traveller()
    for number, dialect in TURNS:
        traveller.turn(number, dialect)
    left = [part for part in _parts(traveller.messages) if isinstance(part, Thinking)]
    told = [loss for loss in traveller.losses if "thinking" in loss.reason]
    assert len(left) + len(told) >= len(TURNS)
    seals = [part for part in _parts(traveller.messages) if part.signature]
    assert all(part.signature == SEAL for part in seals)
