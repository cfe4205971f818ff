"""The cells of the matrix: every client with every provider, in every scenario."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple

import pytest

from tests.gateway.matrix.anthropic_sdk import AnthropicMessages
from tests.gateway.matrix.behind import BACKS, Behind
from tests.gateway.matrix.conversation import Conversation
from tests.gateway.matrix.google_sdk import GoogleGenAI
from tests.gateway.matrix.groq_sdk import Groq
from tests.gateway.matrix.losses import losses_of
from tests.gateway.matrix.mistral_sdk import MistralAI
from tests.gateway.matrix.native import MODELS
from tests.gateway.matrix.ollama_sdk import Ollama
from tests.gateway.matrix.openai_chat_sdk import OpenAIChat
from tests.gateway.matrix.openai_responses_sdk import OpenAIResponses
from tests.gateway.matrix.recorded import SCENARIOS as RECORDED
from tests.gateway.matrix.recorded import recorded
from tests.gateway.matrix.scenarios import SCENARIOS, Cell, Scenario

CLIENTS: tuple[type[Conversation], ...] = (
    OpenAIChat,
    OpenAIResponses,
    AnthropicMessages,
    GoogleGenAI,
    Ollama,
    Groq,
    MistralAI,
)


class Place(NamedTuple):
    """The coordinates of a cell in the matrix."""

    client: type[Conversation]
    scenario: Scenario
    back: str
    stream: bool

    def __str__(self) -> str:
        mode = "streamed" if self.stream else "whole"
        return f"{self.client.name}, {self.scenario.name}, {self.back}, {mode}"


def whole() -> Iterator[Place]:
    """Every cell."""
    for client in CLIENTS:
        for scenario in SCENARIOS:
            for back in BACKS:
                yield Place(client, scenario, back, False)
                yield Place(client, scenario, back, True)


def cover() -> Iterator[Place]:
    """A pairwise selection: any two of client, provider and scenario meet in one cell."""
    for number, client in enumerate(CLIENTS):
        for row, (scenario, stream) in enumerate(
            (scenario, stream) for scenario in SCENARIOS for stream in (False, True)
        ):
            yield Place(client, scenario, BACKS[(number + row // 2 + row % 2 * 2) % 5], stream)


def is_sampled(place: Place) -> bool:
    """Whether a cell is in the half of the selection in which any two still meet."""
    number = CLIENTS.index(place.client) + SCENARIOS.index(place.scenario)
    return place.stream == bool(number % 2)


def sampled(places: Iterator[Place]) -> list[object]:
    """Like `params`; cells that are not sampled are marked `thorough`."""
    return [
        pytest.param(
            place, id=str(place),
            marks=[*skipped(place.client), *([] if is_sampled(place) else [pytest.mark.thorough])],
        )
        for place in places
    ]  # fmt: skip


def params(places: Iterator[Place]) -> list[object]:
    """Cells as parameters of a test; those of SDKs that are not installed are skipped."""
    return [pytest.param(place, id=str(place), marks=skipped(place.client)) for place in places]


def skipped(client: type[Conversation]) -> list[pytest.MarkDecorator]:
    """A skip mark if the client's SDK is not installed."""
    package = client.module.partition(".")[0]
    if find_spec(package) is not None:
        return []
    return [pytest.mark.skip(reason=f"{package} is not installed (extra `peers`)")]


def run(place: Place, url: str, behind: Behind) -> None:
    """Run a cell, and compare its losses with the known ones."""
    answers = place.scenario.answers(place.back, stream=place.stream)
    model = MODELS[place.back]
    client = place.client(url, model)
    cell = Cell(client, place.back, behind, answers, stream=place.stream, model=model)
    place.scenario.run(cell)
    known = _known(place)
    assert cell.lost == known, f"lost: {sorted(cell.lost)}, known: {sorted(known)}"


def replay(place: Place, url: str, behind: Behind) -> None:
    """The same, with a recorded answer of the provider in the first turn."""
    found = recorded(place.back, place.scenario.name, stream=place.stream)
    if found is None:
        pytest.skip("nothing like it was recorded")
    first, model = found
    answers = [first, *place.scenario.answers(place.back, stream=place.stream)[1:]]
    client = place.client(url, f"{place.back}:{model}")
    cell = Cell(client, place.back, behind, answers, stream=place.stream, model=model)
    place.scenario.run(cell)
    more = cell.lost - _known(place)  # a recording need not contain everything that can be lost
    assert not more, f"lost: {sorted(more)}"


def replayed() -> Iterator[Place]:
    """The cells whose scenario was recorded."""
    return (place for place in whole() if place.scenario.name in RECORDED)


def _known(place: Place) -> set[str]:
    return losses_of(place.client.name, place.scenario.name, place.back)
