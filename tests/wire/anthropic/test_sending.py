"""What the encoder leaves out or repairs because the API would reject it."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Image, Message, Request, Text, Thinking
from dragoman.model.parts import Origin
from dragoman.model.requests import Sampling, ThinkingConfig
from dragoman.model.tools import ServerTool, ToolChoice, ToolDefinition
from dragoman.wire.encoded import Encoded

USER = Message.user("Hi")
THOUGHT = Thinking("hm", signature="sig", origin=Origin(dialect="anthropic"))
TOOL = ToolDefinition.create("now", "The time.")
ON = ThinkingConfig(enabled=True, budget=2048)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB"


def _sent(*messages: Message, **fields: Any) -> Encoded:
    speaker: Any = dragoman.dialect("anthropic")
    encoded: Encoded = speaker.encode_request(Request(model="m", messages=messages, **fields))
    assert [one for one in speaker.check(encoded.body) if one.severity == "error"] == []
    return encoded


def test_loss_paths_of_allowed_tools_are_the_request_s() -> None:
    """Loss paths count the tools that `allowed` leaves out (W74)."""
    search = ServerTool("search", "gemini", {})
    custom = ToolDefinition("edit", "Edits.", kind="custom")
    choice = ToolChoice("allowed", ("edit", "search"))
    encoded = _sent(USER, tools=(TOOL, custom, TOOL, search), tool_choice=choice)
    assert [tool["name"] for tool in encoded.body["tools"]] == ["edit"]
    assert [loss.path for loss in encoded.losses] == ["tools[1]", "tools[3]"]


def _answer(*parts: Any) -> Message:
    return Message(dragoman.Role.ASSISTANT, parts)


@pytest.mark.parametrize("thinking", [None, ThinkingConfig(enabled=False)])
def test_prefill_has_no_thinking_while_thinking_is_off(thinking: Any) -> None:
    """Thinking is left out of a prefilled answer and reported as a loss (W53)."""
    encoded = _sent(USER, _answer(THOUGHT, Text("So")), thinking=thinking)
    assert encoded.body["messages"][1]["content"] == "So"
    assert [loss.path for loss in encoded.losses] == ["messages[1].parts[0]"]


def test_prefill_with_only_thinking_is_left_out() -> None:
    """Thinking is also removed from the message before it, which is of the same turn (W53)."""
    encoded = _sent(USER, _answer(THOUGHT, Text("So")), _answer(THOUGHT))
    assert [message["content"] for message in encoded.body["messages"]] == ["Hi", "So"]
    assert [loss.path for loss in encoded.losses] == [
        "messages[1].parts[0]",
        "messages[2].parts[0]",
    ]


def test_system_message_after_a_prefill_makes_no_difference() -> None:
    """System messages move to the front, so the answer is still a prefill (W53)."""
    encoded = _sent(USER, _answer(THOUGHT, Text("So")), Message.system("Be brief."))
    assert encoded.body["messages"][-1] == {"role": "assistant", "content": "So"}


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": (USER, _answer(THOUGHT, Text("So")), USER)},
        {"messages": (USER, _answer(THOUGHT, Text("So"))), "thinking": ON},
        {
            "messages": (USER, _answer(THOUGHT, Text("So"))),
            "thinking": ThinkingConfig(enabled=True),
        },
    ],
)
def test_thinking_is_sent_back_everywhere_else(fields: dict[str, Any]) -> None:
    """Thinking is sent in earlier messages, and in a prefill while thinking is on."""
    encoded = _sent(*fields.pop("messages"), **fields)
    assert encoded.body["messages"][1]["content"][0]["type"] == "thinking"
    assert encoded.losses == ()


def test_sampling_is_left_out_while_thinking() -> None:
    """`temperature`, `top_p` and `top_k` are left out while thinking is on, as losses (W59)."""
    drawn = Sampling(max_tokens=4096, temperature=0.5, top_p=0.9, top_k=5)
    encoded = _sent(USER, sampling=drawn, thinking=ON)
    assert not {"temperature", "top_p", "top_k"} & set(encoded.body)
    assert {loss.path for loss in encoded.losses} == {
        "sampling.temperature",
        "sampling.top_p",
        "sampling.top_k",
    }
    assert _sent(USER, sampling=drawn).losses == ()


def test_allowed_sampling_values_are_sent_while_thinking() -> None:
    """A temperature of 1 and a `top_p` of at least 0.95 are kept (W59)."""
    drawn = Sampling(max_tokens=4096, temperature=1, top_p=0.95)
    encoded = _sent(USER, sampling=drawn, thinking=ON)
    assert (encoded.body["temperature"], encoded.body["top_p"]) == (1, 0.95)
    assert encoded.losses == ()


@pytest.mark.parametrize(("told", "sent"), [("image/jpeg", "image/png"), (None, "image/png")])
def test_image_media_type_follows_the_data(told: str | None, sent: str) -> None:
    """The media type is corrected to match the data, since the API compares them (W65)."""
    encoded = _sent(Message.user(Text("Look"), Image(data=PNG, mime=told)))
    assert encoded.body["messages"][0]["content"][1]["source"]["media_type"] == sent


def test_unrecognized_image_keeps_its_media_type() -> None:
    """If the data isn't recognized, the given media type is sent."""
    encoded = _sent(Message.user(Text("Look"), Image(data="aGk=", mime="image/webp")))
    assert encoded.body["messages"][0]["content"][1]["source"]["media_type"] == "image/webp"
