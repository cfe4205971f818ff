"""`estimate_tokens`: a public estimate, offline."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Image, Message, Messages, Request, ToolDefinition, estimate_tokens
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model import Origin
from dragoman.model.parts import Thinking
from tests.agent.scripts import weather

TALK = Messages(Message.system("Be brief."), Message.user("What is the weather in Basel?"))
MODELS = [
    None,
    "openai:gpt-5",
    "anthropic:claude-sonnet-4-5",
    "google:gemini-2.5-flash",
    "ollama:m",
]


@pytest.mark.whole
@pytest.mark.parametrize("model", MODELS)
def test_a_conversation_is_estimated(model: str | None) -> None:
    """For any model, from any form of the messages; more takes more."""
    few = estimate_tokens(TALK, model=model)
    assert 15 <= few <= 30
    assert few < estimate_tokens([*TALK, Message.assistant("Sunny.")], model=model)
    assert few < estimate_tokens(TALK, model=model, tools=[weather.definition])
    dicts: Any = [{"role": "system", "content": "Be brief."}, ("human", TALK[1].text)]
    assert estimate_tokens(dicts, model=model) == few
    assert estimate_tokens(Request(messages=tuple(TALK)), model=model) == few


def test_what_is_not_sent_is_not_counted() -> None:
    """Another provider's thinking stays at home; the model's own goes back."""
    origin = Origin(dialect="anthropic", provider="anthropic", model="claude-sonnet-4-5")
    thought = Thinking("Let me think. " * 100, signature="c2ln")
    talk = [
        Message.user("Hi"),
        Message.assistant([thought, "Hello."]).replace_unchecked(origin=origin),
        Message.user("And?"),
    ]
    here = estimate_tokens(talk, model="anthropic:claude-sonnet-4-5")
    there = estimate_tokens(talk, model="openai:gpt-4.1")
    assert there < 40
    assert here > 300
    assert estimate_tokens(talk) > 300


def test_pictures_and_tools_count() -> None:
    """A picture by its kind, a tool by its schema."""
    picture = Message.user("?", Image.from_url("https://example.com/a.png"))
    assert estimate_tokens(picture) > 100
    tool = ToolDefinition.create("now", "The time.")
    assert estimate_tokens([], tools=[tool]) > 100
    assert estimate_tokens([]) == 0


def test_a_wrong_model_or_message_is_an_error() -> None:
    """As everywhere."""
    with pytest.raises(ConfigError):
        estimate_tokens("Hi", model="nobody:m")
    with pytest.raises(InvalidInputError):
        estimate_tokens(5)
