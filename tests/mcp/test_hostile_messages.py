"""Messages that nobody asked for: floods, foreign ids, and tools that change between two calls."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent
from dragoman.testing import ScriptedModel
from tests.mcp.servers import SCHEMA, Scripted, Send, calling, text_result, tools_listed

pytestmark = pytest.mark.whole

_FLOOD = 500


def _agent(scripted: Scripted, *tools: str) -> Agent[Any, str]:
    return Agent(ScriptedModel([*map(calling, tools), "Done."]), tools=[scripted.server])


async def _stray(message: dict[str, Any], send: Send) -> dict[str, Any]:
    """An answer among messages about requests that were never made."""
    foreign: tuple[int | str, ...] = (10_000, -1, "no-such-id", f"x{message['id']}")
    for each in foreign:
        await send({"id": each, "result": text_result("for somebody else")})
        await send({"id": each, "error": {"code": -1, "message": "for somebody else"}})
        params: dict[str, Any] = {"progressToken": each, "progress": 1, "message": "foreign"}
        await send({"method": "notifications/progress", "params": params})
        await send({"method": "notifications/cancelled", "params": {"requestId": each}})
    return text_result("for us")


async def test_answers_and_progress_for_other_requests_are_ignored() -> None:
    """A call gets the answer with its own id, whatever else arrives before."""
    scripted = Scripted(
        {"tools/list": tools_listed({"name": "a", "inputSchema": SCHEMA}), "tools/call": _stray}
    )
    async with scripted.server:
        result = await _agent(scripted, "a").send("Hi")
    assert result.text == "Done."
    texts = [part.content for message in result.messages for part in message.tool_results]
    assert texts == ["for us"]


async def _twice(message: dict[str, Any], send: Send) -> dict[str, Any]:
    """The answer, before it is sent again."""
    await send({"id": message["id"], "result": text_result("first")})
    return text_result("second")


async def test_of_two_answers_the_first_counts() -> None:
    """The second one is not taken for the answer of a later call."""
    scripted = Scripted(
        {"tools/list": tools_listed({"name": "a", "inputSchema": SCHEMA}), "tools/call": _twice}
    )
    async with scripted.server:
        result = await _agent(scripted, "a", "a").send("Hi")
    texts = [part.content for message in result.messages for part in message.tool_results]
    assert texts == ["first", "first"]


@pytest.mark.parametrize("method", ["tools/list_changed", "resources/updated", "message"])
async def test_a_flood_of_notifications_ends_no_run(method: str) -> None:
    """Hundreds of them come before the answer, which is used all the same."""
    params: dict[str, Any] = {
        "tools/list_changed": {}, "resources/updated": {"uri": "test://a"},
        "message": {"level": "info", "data": "x"},
    }[method]  # fmt: skip

    async def flood(_message: dict[str, Any], send: Send) -> dict[str, Any]:
        for _ in range(_FLOOD):
            await send({"method": f"notifications/{method}", "params": params})
        return text_result("at last")

    scripted = Scripted(
        {"tools/list": tools_listed({"name": "a", "inputSchema": SCHEMA}), "tools/call": flood},
        timeout=60.0,
    )
    async with scripted.server:
        result = await _agent(scripted, "a").send("Hi")
    texts = [part.content for message in result.messages for part in message.tool_results]
    assert texts == ["at last"]
    assert scripted.methods().count("tools/list") <= 3  # not once for each notification


async def test_a_tool_that_was_renamed_since_it_was_listed() -> None:
    """The server's refusal is the call's result, and the new name is called as it is listed."""

    async def call(message: dict[str, Any], send: Send) -> dict[str, Any]:
        name = message["params"]["name"]
        if name == "old":
            scripted.answers["tools/list"] = tools_listed({"name": "new", "inputSchema": SCHEMA})
            await send({"method": "notifications/tools/list_changed"})
            return {"code": -32602, "message": "Unknown tool"}
        return text_result(name)

    scripted = Scripted(
        {"tools/list": tools_listed({"name": "old", "inputSchema": SCHEMA}), "tools/call": call}
    )
    async with scripted.server:
        result = await _agent(scripted, "old", "new", "old").send("Hi")
    results = [part for message in result.messages for part in message.tool_results]
    assert [part.is_error for part in results] == [True, False, True]
    assert results[1].content == "new"
    called = [each["params"]["name"] for each in scripted.heard if each["method"] == "tools/call"]
    assert called == ["old", "new"]  # what is no longer offered isn't asked for


async def test_progress_without_an_end_does_not_extend_a_call() -> None:
    """A server that reports progress for ever runs into the timeout of the call."""

    async def busy(message: dict[str, Any], send: Send) -> None:
        token = message["params"].get("_meta", {}).get("progressToken", 0)
        for number in range(1_000_000):
            params = {"progressToken": token, "progress": number}
            await send({"method": "notifications/progress", "params": params})
            await asyncio.sleep(0.01)

    scripted = Scripted(
        {"tools/list": tools_listed({"name": "a", "inputSchema": SCHEMA}), "tools/call": busy},
        timeout=0.5,
    )
    async with scripted.server:
        result = await asyncio.wait_for(_agent(scripted, "a").send("Hi"), 20)
    (one,) = [part for message in result.messages for part in message.tool_results]
    assert one.is_error
