"""The examples of docs/operations/middleware.md, between real clients and models."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.gateway.config.reading import parse_config
from dragoman.model.parts import Text
from tests.gateway.answers import KINDS, SAID, said
from tests.gateway.client_requests import FRONTS
from tests.gateway.middleware.conftest import Stage
from tests.test_docs import blocks, run
from tests.wire.test_map_text import PLANTED, decoded, planted, written

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "middleware.md"
TEXT = "Write to ada@example.org, bob.b+x@mail.example.com or <eve@a.b.example>. Not @ that."
CLEAN = "Write to [e-mail], [e-mail] or <[e-mail]>. Not @ that."


@pytest.fixture(scope="module")
def examples() -> dict[str, Any]:
    """What the page defines."""
    found: dict[str, Any] = {}
    code = [block for block in blocks(PAGE.read_text()) if block.language == "python"]
    run(PAGE.name, code, found)
    return found


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("stream", [False, True])
def test_topics_are_refused(
    stage: Stage, examples: dict[str, Any], front: str, stream: bool
) -> None:
    """By an error or as the assistant; everything else is answered."""
    stage.use(examples["no_weapons"])
    assert stage.ask(front, "Which Weapon?", stream=stream).status == 403
    assert stage.text(front, stream=stream) == SAID
    stage.use(examples["polite"])
    assert stage.text(front, "Which weapon?", stream=stream) == "I can't help with that."
    assert stage.text(front, stream=stream) == SAID


@pytest.mark.parametrize("front", FRONTS)
def test_addresses_are_redacted_in_both_directions(
    stage: Stage, examples: dict[str, Any], front: str
) -> None:
    """Neither the model nor the client sees one, in plain answers and in streams."""
    stage.use(examples["redact"])
    for back in (*KINDS, "here"):
        if back != "here":
            stage.providers[back].answers = [said(Text(TEXT))]
        for stream in (False, True):
            assert stage.text(front, TEXT, stream=stream, model=back) == CLEAN
        if back != "here":
            assert "example.org" not in json.dumps(stage.providers[back].asked)


@pytest.mark.parametrize("dialect", dragoman.dialects())
async def test_no_address_in_recorded_requests_is_sent(
    examples: dict[str, Any], dialect: str
) -> None:
    """Wherever an address is in a recorded request, no provider gets it from the example."""
    info = examples["Info"](front=dialect, headers={}, model=None, stream=False)
    count = 0
    for number, (body, path, wire) in enumerate(planted(dialect, "request")):
        request = decoded(body, wire) if number % 5 == 0 else None
        if request is not None:
            made = await examples["redact"].before(request, info)
            assert [name for name, text in written(made) if PLANTED.encode() in text] == [], path
            count += 1
    assert count > 10


def test_redaction_does_not_depend_on_chunks(examples: dict[str, Any]) -> None:
    """Any division into events, even of long words and lines, gives the same result."""
    info, delta, stop = examples["Info"], examples["PartDelta"], examples["PartStop"]
    draw = random.Random(5)
    words = ["ada@example.org", "a", "@", "x" * 400, "y@z", "no.reply@a.b", "x" * 90 + "@b.cd", "é"]
    for _ in range(500):
        text = "".join(
            draw.choice(words) + draw.choice([" ", "\n", "", ",", " "]) for _ in range(8)
        )
        told, state = "", info(front="", headers={}, model=None, stream=True)
        place = 0
        while place < len(text):
            size = draw.choice([1, 2, 5, 30, 500])
            told += examples["redact"].on_event(delta(0, text[place : place + size]), state).text
            place += size
        told += examples["redact"].on_event(stop(0), state)[0].text or ""
        assert told == examples["redacted"](text)


def test_requests_are_routed_by_size(stage: Stage, examples: dict[str, Any]) -> None:
    """A large one goes to another model."""

    class Here:
        def route(self, request: Any, info: Any) -> str | None:
            info.model = "auto"
            name = examples["Sized"]().route(request, info)
            return "gemini" if name == "large-context" else None

    stage.use(Here)
    assert stage.text("openai-chat", "x" * 100_001) == SAID
    assert stage.text("openai-chat", "x") == SAID
    assert [record.route for record in stage.records] == ["gemini", "anthropic"]


@pytest.mark.parametrize("stream", [False, True])
def test_tokens_are_counted(stage: Stage, examples: dict[str, Any], stream: bool) -> None:
    """In plain answers and in streams."""
    examples["used"].clear()
    stage.use(examples["CountTokens"])
    for front in FRONTS:
        stage.text(front, stream=stream)
    assert examples["used"] == {"no key": 7 * len(FRONTS)}


def test_the_configurations_are_valid() -> None:
    """Each TOML block of the page can be used."""
    found = [block for block in blocks(PAGE.read_text()) if block.language == "toml"]
    configs = [parse_config(block.code, {"OPENAI_API_KEY": "k"}) for block in found]
    assert len(configs) == 3
    assert configs[1].routes[0].cache == 600.0
    assert set(configs[2].prices) == {"lab:*", "openai:gpt-5", "house-model"}
