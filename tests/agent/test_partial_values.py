"""`chunk.partial` grows while the answer comes, in each dialect and mode."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec import UNSET

import dragoman
from dragoman import Agent, FinishReason
from dragoman.model.events import (
    ChoiceFinish,
    Event,
    PartDelta,
    PartStart,
    PartStop,
    ResponseEnd,
    ResponseStart,
)
from dragoman.model.parts import Text
from dragoman.model.tools import ToolCall
from tests.agent.frames import kind
from tests.agent.vendors import Obedient, speaking
from tests.transport.servers import Seen, Step, streamed


@dataclass
class Place:
    """Where it is."""

    name: str
    height: int = 0


@dataclass
class Report:
    """The weather in a place: most fields have defaults."""

    place: Place | None = None
    degrees: int = 0
    text: str = ""
    notes: list[str] = field(default_factory=list)


VALUE = {"place": {"name": "Basel", "height": None}, "degrees": 3, "text": "Rain, then sun.",
         "notes": ["wet", "cold"]}  # fmt: skip
MEANT = Report(Place("Basel"), 3, "Rain, then sun.", ["wet", "cold"])
ROWS = (
    ("openai:gpt-4.1", "openai-chat"), ("openai:gpt-5", "openai-responses"),
    ("openrouter:anthropic/claude-sonnet-4.5", "openai-chat"),
    ("anthropic:claude-sonnet-4-5", "anthropic"),
    ("google:gemini-3-pro-preview", "gemini"), ("ollama:llama3.2", "ollama"),
)  # fmt: skip


class Piecemeal(Obedient):
    """Streams the value in small pieces."""

    def answer(self, seen: Seen) -> Sequence[Step]:
        """A call or a text, as it is asked for."""
        said = self.said(self.read(seen))
        (part,) = said.parts
        assert isinstance(part, (Text, ToolCall))
        if isinstance(part, ToolCall):
            text, begun = part.raw_arguments, part.replace(raw="", input=None)
            finish, parts = FinishReason.TOOL_CALLS, PartStart(0, begun)
        else:
            text, finish, parts = part.text, FinishReason.STOP, PartStart(0, Text(""))
        pieces = [text[at : at + 4] for at in range(0, len(text), 4)]
        events: list[Event] = [ResponseStart(id="r", model="m"), parts]
        events += [PartDelta(0, piece) for piece in pieces]
        events += [PartStop(0), ChoiceFinish(finish), ResponseEnd()]
        encoder = dragoman.dialect(self.dialect).stream_encoder()
        frames = [*map(encoder.feed, events), encoder.close()]
        return streamed(*filter(None, frames), kind=kind(self.dialect))


def _without_nulls(value: Any) -> Any:
    """The value as a model gives it that isn't held to a strict schema."""
    if not isinstance(value, dict):
        return value
    return {key: _without_nulls(item) for key, item in value.items() if item is not None}


@pytest.mark.parametrize("mode", ["native", "tool", "two_phase"])
@pytest.mark.parametrize(("model", "dialect"), ROWS, ids=[model for model, _ in ROWS])
async def test_partial_values_come_before_the_end(model: str, dialect: str, mode: Any) -> None:
    """Also where the schema was changed for strict mode, and has to be restored."""
    is_strict = model.startswith("openai:")
    vendor = Piecemeal(dialect, VALUE if is_strict else _without_nulls(VALUE))
    async with speaking(vendor, model) as client:
        agent = Agent(client, output=Report, output_mode=mode, max_tokens=900)
        stream = agent.stream("Weather?")
        chunks = [chunk async for chunk in stream]
    assert vendor.faults == []
    assert stream.result.output == MEANT
    partial = [chunk.partial for chunk in chunks if chunk.partial is not UNSET]
    assert all(isinstance(each, Report) for each in partial)
    assert partial[-1] == MEANT
    if mode == "tool" and dialect in ("gemini", "ollama"):
        return  # their calls come whole
    assert len(partial) > 5
    texts = [each.text for each in partial if each.place == Place("Basel")]
    assert any(MEANT.text.startswith(text) for text in texts if text not in ("", MEANT.text))
    streamed_text = "".join(chunk.output for chunk in chunks)
    if mode != "tool" and streamed_text:
        assert streamed_text.endswith(stream.result.messages[-1].text)
        assert json.loads(stream.result.messages[-1].text) == _without_nulls(VALUE)
