"""Messages of processes: a line may be very long, or never end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent
from dragoman.mcp import transports
from dragoman.testing import ScriptedModel
from tests.mcp.servers import calling, process


async def test_an_endless_line_closes_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call fails at the limit instead of filling the memory; the next one has a new process."""
    monkeypatch.setattr(transports, "MAX_LINE_BYTES", 1_000_000)
    async with process(timeout=20.0) as server:
        model = ScriptedModel([calling("drone"), calling("echo", word="back"), "Done."])
        result = await Agent(model, tools=[server]).send("Hi")
    first, second = (part for message in result.messages for part in message.tool_results)
    assert first.is_error
    assert (second.is_error, second.content) == (False, "back")


async def test_a_long_line_arrives_whole() -> None:
    """Eight megabytes, in linear time."""
    async with process(timeout=60.0) as server:
        result: Any = await server.call_tool("large", {"size": 4_000_000})
    assert result.text == "é" * 4_000_000


@given(
    st.lists(st.text(max_size=6), max_size=6).map("\n".join),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_complete_lines_are_returned_whatever_the_chunks(text: str, sizes: list[int]) -> None:
    """No text is lost, and each piece except the last ends with a line end."""
    decoder, data = transports._Lines(), text.encode()
    pieces, place = [], 0
    while place < len(data):
        size = sizes[place % len(sizes)]
        pieces.append(decoder.decode(data[place : place + size]))
        place += size
    assert all(piece.endswith("\n") for piece in pieces if piece)
    assert "".join([*pieces, decoder.decode(b"", final=True)]) == text
