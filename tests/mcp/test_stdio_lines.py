"""Messages of processes: a line may be long, and may never end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent
from dragoman.mcp import stdio_lines
from dragoman.testing import ScriptedModel
from tests.mcp.servers import calling, process


async def test_a_line_without_an_end_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the memory: the call fails at the limit, and the next one has a new process."""
    monkeypatch.setattr(stdio_lines, "MAX_LINE_BYTES", 1_000_000)
    async with process(timeout=20.0) as server:
        model = ScriptedModel([calling("drone"), calling("echo", word="back"), "Done."])
        result = await Agent(model, tools=[server]).send("Hi")
    first, second = (part for message in result.messages for part in message.tool_results)
    assert first.is_error
    assert (second.is_error, second.content) == (False, "back")


async def test_a_long_line_arrives_whole() -> None:
    """Eight megabytes, in time that grows with its length and not with its square."""
    async with process(timeout=60.0) as server:
        result: Any = await server.call_tool("large", {"size": 4_000_000})
    assert result.text == "é" * 4_000_000


@given(
    st.lists(st.text(max_size=6), max_size=6).map("\n".join),
    st.lists(st.integers(1, 4), min_size=1),
)
def test_whole_lines_come_out_however_the_bytes_arrive(text: str, sizes: list[int]) -> None:
    """All of the text, and each piece but the last ends with a line."""
    decoder, data = stdio_lines._Lines(), text.encode()
    pieces, place = [], 0
    while place < len(data):
        size = sizes[place % len(sizes)]
        pieces.append(decoder.decode(data[place : place + size]))
        place += size
    assert all(piece.endswith("\n") for piece in pieces if piece)
    assert "".join([*pieces, decoder.decode(b"", final=True)]) == text
