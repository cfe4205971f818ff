"""Third-party servers: everything, filesystem and memory (npm), fetch (PyPI).

They show that everything documented as supported works.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Image, Text
from dragoman.errors import ConnectError, ProviderError
from dragoman.mcp import LogMessage, MCPServer, Progress, Question, Sampling, mcp_servers
from dragoman.mcp.transports import Http, Stdio
from dragoman.testing import ScriptedModel
from tests.mcp import reference_servers
from tests.mcp.servers import calling

pytestmark = pytest.mark.slow


@asynccontextmanager
async def everything(transport: str, **options: Any) -> AsyncGenerator[MCPServer]:
    """The server `everything`, over each of its transports."""
    script = reference_servers.script("everything")
    options = {"requires_approval": False, "name": "everything", **options}
    if transport == "stdio":
        async with MCPServer.stdio("node", script, "stdio", **options) as server:
            yield server
        return
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    kind = "sse" if transport == "sse" else "streamableHttp"
    process = await asyncio.create_subprocess_exec(
        "node", script, kind, env={**os.environ, "PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await _listening(port)
        address = f"http://127.0.0.1:{port}"
        make = MCPServer.sse if transport == "sse" else MCPServer.http
        path = "sse" if transport == "sse" else "mcp"
        async with make(f"{address}/{path}", **options) as server:
            yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _listening(port: int) -> None:
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError


async def _until(condition: Any, seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError


TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http", "sse"])


@TRANSPORTS
async def test_tools_and_their_results(transport: str) -> None:
    """Text, structured data with its schema, images, embedded resources and links."""
    async with everything(transport) as server:
        tools = {each.name: each for each in await server.tools()}
        assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= set(tools)
        assert tools["echo"].read_only is True
        assert server.problems == ()
        script = [
            calling("get-sum", a=2, b=3),
            calling("get-structured-content", "call_2", location="Chicago"),
            calling("get-tiny-image", "call_3"),
            calling("get-resource-links", "call_4", count=2),
            calling("get-resource-reference", "call_5", resourceType="Text", resourceId=1),
            calling("get-sum", "call_6", a="two", b=3),
            "Done.",
        ]
        agent = Agent(ScriptedModel(script), tools=[server])
        result = await agent.send("Go.")
        found = [message.tool_results[0] for message in result.messages if message.tool_results]
        text, data, image, links, reference, wrong = found
        assert text.text == "The sum of 2 and 3 is 5."
        assert data.data.keys() == {"temperature", "conditions", "humidity"}
        assert [type(part) for part in image.parts] == [Text, Image, Text]
        assert sum("[resource: " in part.text for part in links.parts) == 2  # type: ignore[union-attr]
        assert any("demo://resource/dynamic/text/1" in str(part.text) for part in reference.parts)  # type: ignore[union-attr]
        assert wrong.is_error is True


@TRANSPORTS
async def test_resources_prompts_and_completion(transport: str) -> None:
    """Listed, read and filled in."""
    async with everything(transport) as server:
        resources = await server.resources()
        assert any(each.uri.endswith("architecture.md") for each in resources)
        (read,) = await server.read_resource(resources[0])
        assert read.text.startswith(resources[0].uri)  # type: ignore[union-attr]
        templates = await server.resource_templates()
        assert any("{resourceId}" in each.uri_template for each in templates)
        (dynamic,) = await server.read_resource("demo://resource/dynamic/text/7")
        assert "Resource 7" in dynamic.text  # type: ignore[union-attr]
        with pytest.raises(ProviderError):
            await server.read_resource("demo://nothing")
        prompts = {each.name: each for each in await server.prompts()}
        messages = await server.prompt("args-prompt", {"city": "Basel", "state": "BS"})
        assert "Basel" in messages[0].text
        given = {"resourceType": "Text", "resourceId": "1"}
        embedded = await server.prompt("resource-prompt", given)
        assert "demo://resource/dynamic/text/1" in "".join(each.text for each in embedded)
        completed = await server.complete(prompts["completable-prompt"], "department", "E")
        assert "Engineering" in completed
        others = {"department": "Engineering"}
        names = await server.complete(
            prompts["completable-prompt"], "name", "", others=others
        )  # fmt: skip
        assert names


@TRANSPORTS
async def test_the_server_asks(transport: str, tmp_path: Path) -> None:
    """For a model, the user and folders; its tools for that appear when it knows that it may."""
    questions: list[Question] = []

    def answer(question: Question) -> dict[str, Any]:
        questions.append(question)
        return {"name": "Bo", "check": True}

    model = ScriptedModel(["Forty-two."])
    async with everything(
        transport, elicit=answer, roots=[tmp_path], sampling=Sampling(model, approve=True)
    ) as server:
        wanted = {"trigger-sampling-request", "trigger-elicitation-request", "get-roots-list"}
        for _ in range(100):
            if wanted <= {each.name for each in await server.tools()}:
                break
            await asyncio.sleep(0.05)
        sampled = await server.call_tool("trigger-sampling-request", {"prompt": "What?"})
        assert "Forty-two." in sampled.text
        assert "What?" in model.requests[0].messages[0].text
        elicited = await server.call_tool("trigger-elicitation-request")
        assert "Bo" in elicited.text
        assert questions[0].schema["properties"]["name"]["type"] == "string"
        roots = await server.call_tool("get-roots-list")
        assert tmp_path.as_uri() in roots.text


@TRANSPORTS
async def test_progress_and_cancellation(transport: str) -> None:
    """A long operation reports its progress, and is then cancelled."""
    told: list[Progress] = []
    async with everything(transport, on_progress=told.append) as server:
        call = calling("trigger-long-running-operation", duration=60, steps=120)
        agent = Agent(ScriptedModel([call, "Done."]), tools=[server])
        run = asyncio.ensure_future(agent.send("Go."))
        await _until(lambda: len(told) > 1)
        assert (told[0].total, told[0].tool) == (120, "trigger-long-running-operation")
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(run, 5)
        assert (await server.call_tool("echo", {"message": "hi"})).text == "Echo: hi"


@TRANSPORTS
async def test_resources_are_watched_and_logs_are_reported(transport: str) -> None:
    """Every five seconds, as that server does."""
    logs: list[LogMessage] = []
    uri = "demo://resource/dynamic/text/1"
    async with everything(transport, on_log=logs.append, log_level="debug") as server:
        async with aclosing(server.subscribe(uri)) as updates:
            first = asyncio.ensure_future(anext(updates))
            await asyncio.sleep(0.3)
            await server.call_tool("toggle-subscriber-updates")
            await server.call_tool("toggle-simulated-logging")
            assert await asyncio.wait_for(first, 20) == uri
        await _until(lambda: logs)
    assert logs[0].server == "everything"


async def test_a_crash_is_survived() -> None:
    """The process is killed during a call; the next one has a new process."""
    told: list[Progress] = []
    async with everything("stdio", on_progress=told.append) as server:
        slow = {"duration": 60, "steps": 120}
        call = asyncio.ensure_future(server.call_tool("trigger-long-running-operation", slow))
        await _until(lambda: told)
        killed = [path for path in Path("/proc").glob("[0-9]*") if _is_child(path)]  # noqa: ASYNC240
        for path in killed:
            os.kill(int(path.name), signal.SIGKILL)
        assert len(killed) == 1
        with pytest.raises(ConnectError, match="was lost"):
            await asyncio.wait_for(call, 10)
        assert (await server.call_tool("echo", {"message": "hi"})).text == "Echo: hi"


def _is_child(path: Path) -> bool:
    try:
        command = (path / "cmdline").read_bytes()
        parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return False
    return b"server-everything" in command and int(parent) == os.getpid()


async def test_files(tmp_path: Path) -> None:
    """Of folders that the server got as roots, and of no others."""
    inside, outside = tmp_path / "in", tmp_path / "out"
    inside.mkdir()
    outside.mkdir()
    (inside / "a.txt").write_text("Hello", encoding="utf-8")
    (outside / "b.txt").write_text("Secret", encoding="utf-8")
    server = MCPServer.stdio(
        "node", reference_servers.script("filesystem"), str(tmp_path / "in"), prefix="fs",
        roots=[inside], requires_approval=lambda tool, _: tool.read_only is not True,
    )  # fmt: skip
    script = [
        calling("fs_read_text_file", path=str(inside / "a.txt")),
        calling("fs_read_text_file", "call_2", path=str(outside / "b.txt")),
        calling("fs_write_file", "call_3", path=str(inside / "c.txt"), content="New"),
        "Done.",
    ]
    agent = Agent(ScriptedModel(script), tools=[server])
    async with agent:
        result = await agent.send("Go.")
        read, refused = (result.messages[at].tool_results[0] for at in (2, 4))
        assert "Hello" in read.text
        assert refused.is_error is True
        assert "Secret" not in refused.text
        assert [call.name for call in result.deferred] == ["fs_write_file"]
        assert not (inside / "c.txt").exists()
        await agent.send(history=result.messages, approvals={"call_3": True})
        assert (inside / "c.txt").read_text(encoding="utf-8") == "New"


async def test_memory(tmp_path: Path) -> None:
    """Its state outlives its process."""
    env = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    server = MCPServer.stdio("node", reference_servers.script("memory"), env=env,
                             requires_approval=False)  # fmt: skip
    bo = {"name": "Bo", "entityType": "person", "observations": ["likes rain"]}
    script = [calling("create_entities", entities=[bo]), "Noted.", calling("read_graph"), "Rain."]
    agent = Agent(ScriptedModel(script), tools=[server])
    async with agent:
        await agent.send("Bo likes rain.")
    async with agent:
        result = await agent.send("What does Bo like?")
    (graph,) = result.messages[2].tool_results
    assert graph.data["entities"][0]["observations"] == ["likes rain"]


async def test_fetch() -> None:
    """A page on loopback, by the reference server from PyPI."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<html><body><h1>Rain</h1><p>All day.</p></body></html>"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        await writer.drain()
        writer.close()

    command = reference_servers.fetch_server()
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as pages:
        port = pages.sockets[0].getsockname()[1]
        options: Any = {"requires_approval": False}
        flags = ("--ignore-robots-txt", "--allow-private-ips")
        async with MCPServer.stdio(command, *flags, **options) as server:
            url = f"http://127.0.0.1:{port}/"
            agent = Agent(ScriptedModel([calling("fetch", url=url), "Rain."]), tools=[server])
            result = await agent.send("What is there?")
            (prompt,) = await server.prompts()
            assert [each.name for each in prompt.arguments] == ["url"]
    assert "All day." in result.messages[2].tool_results[0].text


async def test_several_servers_at_a_time(tmp_path: Path) -> None:
    """From one file, with their names as prefixes of their tools."""
    document = {"mcpServers": {
        "everything": {"command": "node", "args": [reference_servers.script("everything")]},
        "memory": {"command": "node", "args": [reference_servers.script("memory")],
                   "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}},
    }}  # fmt: skip
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    servers = mcp_servers(path, requires_approval=False)
    script = [calling("everything_echo", message="hi"), calling("memory_read_graph", "c2"), "Done."]
    async with Agent(ScriptedModel(script), tools=servers) as agent:
        result = await agent.send("Go.")
    assert result.messages[2].tool_results[0].text == "Echo: hi"
    assert result.messages[4].tool_results[0].data == {"entities": [], "relations": []}


def test_documented_configurations_of_the_servers_are_read() -> None:
    """Every example of their READMEs, for Claude Desktop and for VS Code."""
    found = 0
    for page in reference_servers.readmes():
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL):
            document = json.loads(block)
            if "mcpServers" in document or "servers" in document or "mcp" in document:
                servers = mcp_servers(document, inputs=lambda name, _: name, workspace="/srv")
                assert servers
                found += 1
    assert found >= 8


def test_the_file_that_claude_code_writes_is_read(tmp_path: Path, monkeypatch: Any) -> None:
    """By its own command, for each transport."""
    program = reference_servers.claude_code()

    def add(*arguments: str) -> None:
        env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}
        subprocess.run([program, "mcp", "add", "--scope", "project", *arguments], cwd=tmp_path,
                       check=True, capture_output=True, timeout=60, env=env)  # fmt: skip

    add("files", "--env", "KEY=abc", "--", "npx", "-y", "server", "/srv")
    add("--transport", "http", "api", "https://example.com/mcp", "--header", "X-Key: ${TOKEN}")
    add("--transport", "sse", "events", "https://example.com/events")
    monkeypatch.setenv("TOKEN", "sk-1")
    found = {
        each.name: each._connections._transport for each in mcp_servers(tmp_path / ".mcp.json")
    }
    assert found == {
        "files": Stdio("npx", ("-y", "server", "/srv"), {"KEY": "abc"}, None),
        "api": Http("https://example.com/mcp", {"X-Key": "sk-1"}),
        "events": Http("https://example.com/events", {}, is_sse=True),
    }
