"""Resources, prompts and completion, in both generations of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from mcp.server.mcpserver import Context
from mcp.server.mcpserver import MCPServer as SdkServer
from mcp_types import Completion

from dragoman import Agent
from dragoman.errors import ProviderError
from dragoman.testing import ScriptedModel
from tests.mcp.servers import Scripted, in_process

ERAS = pytest.mark.parametrize("protocol", ["auto", "handshake"])


def library() -> SdkServer:
    """Something to read, to say and to complete."""
    server = SdkServer("library")
    counts = {"read": 0}

    @server.resource("book://count", mime_type="text/plain")
    def count() -> str:
        """How often it was read."""
        counts["read"] += 1
        return str(counts["read"])

    @server.resource("book://{title}/{page}")
    def page(title: str, page: str) -> str:
        """A page."""
        return f"{title}, {page}"

    @server.resource("book://cover", mime_type="image/png")
    def cover() -> bytes:
        """A picture."""
        return b"\x89PNG\r\n\x1a\n" + b"\0" * 20

    @server.prompt()
    def review(code: str, tone: str = "kind") -> str:
        """Review code."""
        return f"Review this, be {tone}: {code}"

    @server.tool()
    async def write(ctx: Context) -> str:
        """Write."""
        await ctx.notify_resource_updated("book://count")
        return "written"

    async def complete(_ref: Any, argument: Any, _context: Any) -> Completion:
        tones = ("kind", "keen")
        return Completion(values=[each for each in tones if each.startswith(argument.value)])

    decorate: Any = server.completion
    decorate()(complete)
    return server


@ERAS
async def test_resources_are_listed_and_read(protocol: str) -> None:
    """Text by its URI, and images as images."""
    async with in_process(library(), protocol=protocol) as server:
        found = {each.uri: each for each in await server.resources()}
        assert set(found) == {"book://count", "book://cover"}
        assert found["book://count"].mime == "text/plain"
        (text,) = await server.read_resource(found["book://count"])
        assert text.text == "book://count\n1"  # type: ignore[union-attr]
        (image,) = await server.read_resource("book://cover")
        assert (type(image).__name__, image.mime) == ("Image", "image/png")  # type: ignore[union-attr]
        (template,) = await server.resource_templates()
        assert template.uri_template == "book://{title}/{page}"
        (page,) = await server.read_resource("book://Emma/3")
        assert page.text.endswith("Emma, 3")  # type: ignore[union-attr]
        with pytest.raises(ProviderError):
            await server.read_resource("book://nothing")


@ERAS
async def test_prompts_are_messages(protocol: str) -> None:
    """Ready to be sent."""
    async with in_process(library(), protocol=protocol) as server:
        (prompt,) = await server.prompts()
        assert [(one.name, one.is_required) for one in prompt.arguments] == [
            ("code", True), ("tone", False),
        ]  # fmt: skip
        messages = await server.prompt("review", {"code": "x = 1"})
        assert [(each.role, each.text) for each in messages] == [
            ("user", "Review this, be kind: x = 1")
        ]
        agent = Agent(ScriptedModel(["Fine."]))
        assert (await agent.send(history=[*messages])).output == "Fine."
        assert await server.complete(prompt, "tone", "ki") == ("kind",)
        with pytest.raises(ProviderError):
            await server.prompt("nothing")


async def test_a_server_without_them_is_not_asked() -> None:
    """By the capabilities that it declares."""
    scripted = Scripted({"initialize": _nothing})
    server = scripted.server
    assert await server.tools() == ()
    assert [*await server.resources(), *await server.prompts()] == []
    assert await server.resource_templates() == ()
    assert scripted.methods() == ["server/discover", "initialize", "notifications/initialized"]
    await server.close()


async def _nothing(message: dict[str, Any], _send: Any) -> dict[str, Any]:
    return {
        "protocolVersion": message["params"]["protocolVersion"], "capabilities": {},
        "serverInfo": {"name": "empty", "version": "1"},
    }  # fmt: skip


async def test_a_resource_is_watched_since_2026() -> None:
    """Each change is reported once to each listener."""
    async with in_process(library()) as server, aclosing(server.subscribe("book://count")) as told:
        first = asyncio.ensure_future(anext(told))
        await asyncio.sleep(0.1)
        await server.call_tool("write")
        assert await asyncio.wait_for(first, 5) == "book://count"


async def test_a_resource_is_watched_before_2026_and_after_a_loss() -> None:
    """The client subscribes, again after a lost connection, and then all may have changed."""
    sends: list[Callable[[dict[str, Any]], Awaitable[None]]] = []

    async def subscribe(_message: Any, send: Any) -> Any:
        sends.append(send)
        return {}

    scripted = Scripted({"resources/subscribe": subscribe, "resources/unsubscribe": {},
                         "tools/call": "crash"})  # fmt: skip
    told: AsyncGenerator[str] = scripted.server.subscribe("a:1", "a:2")
    first = asyncio.ensure_future(anext(told))
    await scripted.hears("resources/subscribe")
    await asyncio.sleep(0.05)
    update = {"method": "notifications/resources/updated", "params": {"uri": "a:2"}}
    await sends[0](update)
    await sends[0](update)
    assert await asyncio.wait_for(first, 5) == "a:2"
    with pytest.raises(Exception, match="was lost"):
        await scripted.server.call_tool("x")
    again = [await asyncio.wait_for(anext(told), 5) for _ in range(2)]
    assert sorted(again) in (["a:1", "a:2"], ["a:2", "a:2"])
    assert scripted.connections == 2
    await told.aclose()
    await scripted.hears("resources/unsubscribe")
    await scripted.server.close()
