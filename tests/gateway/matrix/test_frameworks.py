"""Agents of other libraries complete a tool call, on every front and with every provider."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from importlib import import_module
from warnings import catch_warnings, simplefilter

import pytest

from dragoman.model.tools import ToolResult
from tests.gateway.matrix.behind import BACKS, Behind, either
from tests.gateway.matrix.frameworks import FRAMEWORKS, Framework
from tests.gateway.matrix.native import MODELS, Said
from tests.gateway.matrix.scenarios import FINAL

Served = tuple[str, Behind]
CALL = Said(calls=(("weather", {"city": "Mostar"}),))


@pytest.fixture(autouse=True)
def libraries_own_warnings() -> Iterator[None]:
    """Warnings of other libraries about each other don't fail our tests."""
    with catch_warnings():
        simplefilter("ignore")
        yield
        gc.collect()  # sockets that they leave open would make a later test fail


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("framework", FRAMEWORKS, ids=[each.name for each in FRAMEWORKS])
def test_a_tool_round(served: Served, framework: Framework, back: str, stream: bool) -> None:
    """The agent runs the tool that the model calls, and returns the final answer."""
    for module in framework.needs:
        try:
            import_module(module)
        except ImportError:
            pytest.skip(f"{module} is not installed")
    url, behind = served
    behind.script(back, MODELS[back], *(either(back, said) for said in (CALL, FINAL)))
    assert framework.ask(url, MODELS[back], stream=stream) == FINAL.text
    assert not behind.asked[1].problems
    parts = [part for message in behind.request(1).messages for part in message.parts]
    [result] = [part for part in parts if isinstance(part, ToolResult)]
    assert "31 °C in Mostar" in result.text
