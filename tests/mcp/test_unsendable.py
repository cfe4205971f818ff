"""What can't be encoded as JSON: refused before it is sent, and the connection stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from dragoman import Agent, Message
from dragoman.errors import ConnectError, InvalidInputError
from dragoman.mcp import MCPServer, Question, Sampling
from dragoman.model.tools import make_call
from dragoman.testing import ScriptedModel
from tests.mcp.servers import Scripted, Send, process, text_result, tools_listed

LONE = "\ud800"


@pytest.mark.parametrize("value", [LONE, {LONE: 1}, [object()], lambda: None])
async def test_arguments_that_can_not_be_sent(value: Any) -> None:
    """The caller is told; later calls work, on the same connection."""
    async with process() as server:
        before = (await server.call_tool("pid")).text
        with pytest.raises(InvalidInputError) as caught:
            await server.call_tool("echo", {"value": value})
        assert LONE not in str(caught.value)
        assert (await server.call_tool("echo", {"word": "after"})).text == "after"
        assert (await server.call_tool("pid")).text == before


async def test_a_model_may_write_half_a_character() -> None:
    """Its call gets an error result; the run goes on."""
    half = make_call("call_1", "echo", raw='{"word": "\\ud800"}')
    whole = make_call("call_2", "echo", raw='{"word": "whole"}')
    model = ScriptedModel([Message.assistant(half), Message.assistant(whole), "Done."])
    async with process() as server:
        result = await Agent(model, tools=[server]).send("Go.")
    assert result.text == "Done."
    first, second = [part for each in result.messages for part in each.tool_results]
    assert first.is_error
    assert (second.is_error, second.text) == (False, "whole")


async def test_names_that_can_not_be_sent() -> None:
    """Neither those of prompts nor those of resources and tools end the connection."""
    async with process() as server:
        for asking in (
            server.prompt(LONE), server.prompt("a", {"b": LONE}), server.read_resource(f"x:{LONE}"),
            server.call_tool(LONE),
        ):  # fmt: skip
            with pytest.raises(InvalidInputError):
                await asking
        assert (await server.call_tool("echo", {"word": "after"})).text == "after"


async def _asking(method: str, params: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What a server is answered, and the text of a later call."""

    async def call(message: dict[str, Any], send: Send) -> dict[str, Any]:
        if message["params"]["name"] == "ask":
            await send({"id": "q1", "method": method, "params": params})
        return text_result("done")

    async def answer(question: Question) -> dict[str, str]:
        return {"word": f"half {LONE}{question.server}"}

    scripted = Scripted(
        {"tools/list": tools_listed("ask", "other"), "tools/call": call}, elicit=answer,
        sampling=Sampling(ScriptedModel([f"half {LONE}"]), approve=True),
    )  # fmt: skip
    async with scripted.server as server:
        await server.call_tool("ask")
        found: list[dict[str, Any]] = []
        for _ in range(500):
            found = [each for each in scripted.heard if each.get("id") == "q1"]
            if found:
                break
            await asyncio.sleep(0.01)
        return found[0], (await server.call_tool("other")).text


async def test_an_answer_of_a_model_is_made_whole() -> None:
    """As in a conversation, half a character is replaced."""
    message = {"role": "user", "content": {"type": "text", "text": "Say something."}}
    answer, later = await _asking(
        "sampling/createMessage", {"messages": [message], "maxTokens": 10}
    )
    assert answer["result"]["content"]["text"] == "half \ufffd"
    assert later == "done"


async def test_an_answer_of_a_user_that_can_not_be_sent_is_an_error() -> None:
    """The server isn't left waiting."""
    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    answer, later = await _asking(
        "elicitation/create", {"mode": "form", "message": "A word?", "requestedSchema": schema}
    )
    assert "error" in answer
    assert later == "done"


async def test_a_transport_that_fails_while_it_writes() -> None:
    """The connection is known to be lost at once, however long it takes to close."""
    opened = 0

    @asynccontextmanager
    async def failing() -> AsyncGenerator[Any]:
        nonlocal opened
        opened += 1
        scripted = Scripted({"tools/list": tools_listed("a"), "tools/call": text_result("fine")})
        async with scripted._streams() as (reading, writing):
            inner, outer = anyio.create_memory_object_stream[Any](100)

            async def write() -> None:
                async for item in outer:
                    if opened == 1 and getattr(item.message, "method", "") == "tools/call":
                        raise RuntimeError
                    await writing.send(item)

            async with inner, outer, anyio.create_task_group() as group:
                group.start_soon(write)
                try:
                    yield reading, inner
                finally:
                    with anyio.CancelScope(shield=True):
                        await anyio.sleep(0.5)  # as if a process had to be stopped
                    group.cancel_scope.cancel()

    async with MCPServer(failing, name="failing", requires_approval=False) as server:
        with pytest.raises(ConnectError):
            await server.call_tool("a")
        assert (await server.call_tool("a")).text == "fine"
    assert opened == 2
