"""Agents run no call that was cut off."""

from __future__ import annotations

from typing import Any

import pytest

import dragoman
from dragoman import Agent, FinishReason, Message, ToolDefinition, tool
from dragoman.errors import StreamInterrupted
from dragoman.model.functions.tool import Tool
from dragoman.model.tools import make_call
from dragoman.testing import ScriptedModel
from tests.peers.claims import is_unfinished
from tests.peers.cut_calls import ROWS, nothing_runs
from tests.peers.rows import Answer, Stream

_HALF = '{"path": "/a", "content": "hello wor'


def _given() -> list[Any]:
    return [
        pytest.param(row.given, id=str(number))
        for number, row in enumerate(ROWS)
        if nothing_runs in row.holds or is_unfinished in row.holds
    ]


def _read(given: Stream | Answer) -> Any:
    speaker = dragoman.dialect(given.dialect)
    if isinstance(given, Answer):
        return speaker.decode_response(given.body), True
    decoder = speaker.stream_decoder()
    decoder.feed(given.data)
    decoder.close()
    return decoder.response, decoder.is_complete


@pytest.mark.whole
@pytest.mark.parametrize("given", _given())
async def test_no_cut_call_is_run(given: Stream | Answer) -> None:
    """A response of the table that ends within a call: the stream fails, or nothing is run."""
    ran: list[str] = []

    @tool
    def write(path: str = "", content: str = "") -> str:
        """Writes a file."""
        ran.append(content + path)
        return "written"

    response, is_complete = _read(given)
    if not is_complete:
        step: Any = StreamInterrupted("it broke off", partial=response)
        with pytest.raises(StreamInterrupted):
            await Agent(ScriptedModel([step] * 9), tools=[write]).send("Write it.")
    else:
        step = response.message
        await Agent(ScriptedModel([step, Message.assistant("Done.")]), tools=[write]).send("Write")
    assert ran == []


@pytest.mark.parametrize("finish", [None, FinishReason.TOOL_CALLS, FinishReason.LENGTH])
async def test_no_cut_text_is_run(finish: FinishReason | None) -> None:
    """A free text that came as the argument of a function, and was cut off, is not run."""
    ran: list[str] = []

    def patched(text: str) -> str:
        ran.append(text)
        return "patched"

    patch = Tool(patched, ToolDefinition("patch", "Patches files.", kind="custom"))
    call = make_call("call_1", "patch", raw='{"input": "*** Begin Patch')
    asked = Message.assistant(tool_calls=(call,)).replace(finish=finish)
    agent = Agent(ScriptedModel([asked, Message.assistant("Done.")]), tools=[patch])
    await agent.send("Patch it.")
    assert ran == []
