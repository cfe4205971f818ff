"""Connections: opened on demand, shared, lost, reopened, and closed."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman import Agent, Message, run_sync
from dragoman.errors import ConfigError, ConnectError, InvalidInputError, TimeoutError  # noqa: A004 - ours
from dragoman.mcp import MCPServer
from dragoman.mcp.connection import Connection
from dragoman.model.tools import make_call
from dragoman.testing import ScriptedModel
from tests.mcp.servers import Scripted, calling, process, text_result, tools_listed

ECHO = {"tools/list": tools_listed("echo"), "tools/call": text_result("hello")}


def is_running(pid: int) -> bool:
    """Whether such a process exists and has not ended."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        try:
            os.kill(pid, 0)
        except OSError:
            return False
        return not Path("/proc").exists()
    return status.rpartition(")")[2].split()[0] != "Z"


async def ends(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(100):
        if not is_running(pid):
            return True
        await asyncio.sleep(0.05)
    return False


async def pid_of(server: MCPServer) -> int:
    """The process of the small server."""
    return int((await server.call_tool("pid")).text)


# --- opened and closed


async def test_it_connects_once_on_demand() -> None:
    """Concurrent runs share one connection; closing ends it, and use opens another."""
    scripted = Scripted(ECHO)
    assert scripted.connections == 0
    agents = [Agent(ScriptedModel([calling("echo"), "Hi."]), tools=[scripted.server])
              for _ in range(5)]  # fmt: skip
    results = await asyncio.gather(*(agent.send("Go.") for agent in agents))
    assert {result.messages[2].tool_results[0].text for result in results} == {"hello"}
    assert scripted.connections == 1
    await scripted.server.close()
    await scripted.server.close()
    assert (await scripted.server.call_tool("echo")).text == "hello"
    assert scripted.connections == 2
    await scripted.server.close()


async def test_a_process_ends_with_its_server() -> None:
    """At the end of the block, also if a server was entered twice."""
    server = process()
    async with server:
        async with server:
            pid = await pid_of(server)
        assert is_running(pid)
        assert await pid_of(server) == pid
    assert await ends(pid)


async def test_closing_an_agent_closes_servers_that_nobody_entered() -> None:
    """A server that was entered stays open."""
    server = process()
    agent = Agent(ScriptedModel([calling("pid"), "Hi."]), tools=[server])
    pid = int((await agent.send("Go.")).messages[2].tool_results[0].text)
    async with server:
        await agent.close()
        assert is_running(pid)
        assert await pid_of(server) == pid
    pid = await pid_of(server)
    await agent.close()
    assert await ends(pid)


def test_every_loop_has_a_connection_that_ends_with_it() -> None:
    """Without an explicit close, and while another loop has one."""
    server = process()

    async def talk() -> int:
        agent = Agent(ScriptedModel([calling("pid"), "Hi."]), tools=[server])
        return int((await agent.send("Go.")).messages[2].tool_results[0].text)

    pids = [asyncio.run(talk()) for _ in range(2)]
    assert len({*pids}) == 2
    assert not any(map(is_running, pids))


def test_loops_of_several_threads_use_one_server_at_a_time() -> None:
    """Each with its own connection; all of them end."""
    server = process()

    async def talk() -> int:
        agent = Agent(ScriptedModel([calling("pid"), "Hi."]), tools=[server])
        return int((await agent.send("Go.")).messages[2].tool_results[0].text)

    pids: list[int] = []
    threads = [Thread(target=lambda: pids.append(asyncio.run(talk()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({*pids}) == 4
    assert not any(map(is_running, pids))


def test_closing_closes_the_connections_of_other_loops() -> None:
    """Those of running loops end by themselves, soon."""
    server = process()
    first = asyncio.new_event_loop()
    pid = first.run_until_complete(pid_of(server))
    thread = Thread(target=first.run_forever)
    thread.start()
    asyncio.run(server.close())
    try:
        assert asyncio.run(ends(pid))
    finally:
        first.call_soon_threadsafe(first.stop)
        thread.join()
        first.close()


async def test_a_stream_may_be_read_by_one_task_after_another() -> None:
    """As with `wait_for`, which waits for each event in a new task."""
    scripted = Scripted(ECHO)
    calls = Message.assistant(make_call("a", "echo", None, {}), make_call("b", "echo", None, {}))
    agent = Agent(ScriptedModel([calling("echo"), calls, "Hi."]), tools=[scripted.server])
    stream = agent.stream("Go.")
    events = stream.events()
    while await asyncio.create_task(_next(events)):
        pass
    assert stream.result.output == "Hi."
    assert [each.text for each in stream.result.messages[4].tool_results] == ["hello"] * 2
    await scripted.server.close()


async def _next(events: Any) -> bool:
    return await anext(events, None) is not None


def test_blocking_calls_share_a_connection() -> None:
    """From any thread; `with` works like `async with`."""
    server = process()
    with server:
        pids: list[str] = []

        def talk() -> None:
            agent = Agent(ScriptedModel([calling("pid"), "Hi."]), tools=[server])
            pids.append(agent.send_sync("Go.").messages[2].tool_results[0].text)

        threads = [Thread(target=talk) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {*pids} == {str(run_sync(pid_of(server)))}
        assert len(pids) == 3
    assert asyncio.run(ends(int(pids[0])))


async def test_a_dropped_server_ends_its_process() -> None:
    """Nobody can close it any more."""
    server = process()
    pid = await pid_of(server)
    del server
    gc.collect()
    assert await ends(pid)


def test_no_process_outlives_the_program() -> None:
    """Neither after blocking calls, whose loop continues, nor if a server ignores its end."""
    program = textwrap.dedent("""
        import sys
        from dragoman import run_sync
        from dragoman.mcp import MCPServer
        server = MCPServer.stdio(sys.executable, "-I", sys.argv[1], "stubborn")
        print(run_sync(server.call_tool("pid")).text)
    """)
    script = Path(__file__).with_name("small_server.py")
    run = subprocess.run(
        [sys.executable, "-c", program, str(script)], capture_output=True, text=True, timeout=60,
        check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert run.stderr == ""
    assert asyncio.run(ends(int(run.stdout)))


# --- servers that can't be opened


async def test_a_missing_command() -> None:
    """The error names it, and neither arguments nor environment."""
    server = MCPServer.stdio("no-such-command", "--key=sk-1", env={"KEY": "sk-22222"})
    with pytest.raises(ConfigError, match="the command `no-such-command`") as caught:
        await server.tools()
    assert "sk-" not in str(caught.value)
    agent = Agent(ScriptedModel(["Hi."]), tools=[server])
    with pytest.raises(ConfigError, match="no-such-command"):
        await agent.send("Go.")


async def test_a_command_that_ends_at_once() -> None:
    """Its stderr is in the error, without the secrets passed to it."""
    server = process("dies", env={"KEY": "sk-secret-1234"})
    with pytest.raises(ConnectError, match="ended before it was ready") as caught:
        await server.open()
    assert "no licence found, key …" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_a_server_that_hangs_at_its_start() -> None:
    """It times out, and its process is stopped."""
    with pytest.raises(TimeoutError, match="was not ready after 1 seconds") as caught:
        await process("hangs", start_timeout=1.0).open()
    assert "waiting for nobody" in str(caught.value)
    assert _running(b"small_server.py\0hangs") == []


def _running(command: bytes) -> list[Path]:
    return [path for path in Path("/proc").glob("[0-9]*/cmdline") if command in _bytes_of(path)]


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has just ended
        return b""


def test_stray_output_of_servers_is_skipped() -> None:
    """Many print a greeting to standard output, where only messages belong."""
    program = textwrap.dedent("""
        import sys
        from dragoman import run_sync
        from dragoman.mcp import MCPServer
        with MCPServer.stdio(sys.executable, "-I", sys.argv[1], "chatters") as server:
            print(run_sync(server.call_tool("echo", {"word": "hi"})).text)
    """)
    script = str(Path(__file__).with_name("small_server.py"))
    run = subprocess.run([sys.executable, "-c", program, script], capture_output=True, text=True,
                         timeout=60, check=True)  # fmt: skip
    assert (run.stdout, run.stderr) == ("hi\n", "")


async def test_stderr_is_kept_off_the_terminal_and_bounded(capfd: Any) -> None:
    """However much there is of it."""
    async with process() as server:
        await server.call_tool("complain")
        with pytest.raises(ConnectError) as caught:
            await server.call_tool("crash")
    assert len(str(caught.value)) < 6_000
    assert "Traceback: it broke" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert capfd.readouterr().err == ""


async def test_the_environment_is_not_passed_on() -> None:
    """Except for essential variables, and those that were given."""
    os.environ["DRAGOMAN_TEST_SECRET"] = "sk-1"
    try:
        async with process(env={"GIVEN": "yes"}) as server:
            told = (await server.call_tool("environment")).text
    finally:
        del os.environ["DRAGOMAN_TEST_SECRET"]
    assert "GIVEN" in told
    assert "PATH" in told
    assert "sk-1" not in told


# --- servers that are lost


async def test_a_server_that_crashes_in_a_call_is_restarted_for_the_next() -> None:
    """The call has an error result that says so; the run continues with a new process."""
    server = process()
    script = [calling("pid"), calling("crash", "call_2"), calling("pid", "call_3"), "Hi."]
    agent = Agent(ScriptedModel(script), tools=[server])
    async with agent:
        result = await agent.send("Go.")
    first, lost, second = (result.messages[at].tool_results[0] for at in (2, 4, 6))
    assert lost.is_error is True
    assert "the connection to the MCP server `small` was lost" in lost.text
    assert "Traceback: it broke" in lost.text
    assert first.text != second.text


async def test_all_calls_in_progress_fail_when_the_server_is_lost() -> None:
    """At once, each with an error result."""
    forever: Callable[..., Awaitable[Any]] = _never

    async def call(message: dict[str, Any], send: Any) -> Any:
        is_last = message["params"]["arguments"].get("last")
        return "crash" if is_last else await forever(message, send)

    scripted = Scripted({"tools/list": tools_listed("wait"), "tools/call": call}, timeout=60.0)
    waiting = [asyncio.ensure_future(scripted.server.call_tool("wait")) for _ in range(3)]
    await asyncio.sleep(0.1)
    with pytest.raises(ConnectError, match="was lost"):
        await scripted.server.call_tool("wait", {"last": True})
    for each in waiting:
        with pytest.raises(ConnectError, match="was lost"):
            await each
    await scripted.server.close()


async def _never(_message: Any, _send: Any) -> Any:
    await asyncio.Event().wait()


async def test_an_interrupted_call_is_not_repeated() -> None:
    """Its effect is unknown; a list is requested again."""
    answers = {"tools/list": tools_listed("pay"), "tools/call": "crash"}
    scripted = Scripted(answers)
    with pytest.raises(ConnectError):
        await scripted.server.call_tool("pay")
    assert scripted.methods().count("tools/call") == 1

    async def once(_message: Any, _send: Any) -> Any:
        answers["tools/list"] = tools_listed("pay")
        scripted.answers.update(answers)
        return "crash"

    scripted.answers["tools/list"] = once
    assert [each.name for each in await scripted.server.tools()] == ["pay"]
    assert scripted.methods().count("tools/list") == 2
    await scripted.server.close()


async def test_an_unavailable_server_gives_error_results(monkeypatch: Any) -> None:
    """A run that knows its tools continues without it, after a few attempts and then at once."""
    monkeypatch.setattr("dragoman.mcp.connections._BACKOFF", 0.001)
    scripted = Scripted(ECHO)
    await scripted.server.tools()
    scripted.answers = {}  # it refuses to start
    await scripted.server.close()
    script = [calling("echo"), calling("echo", "call_2"), "It is gone."]
    agent = Agent(ScriptedModel(script), tools=[scripted.server])
    result = await agent.send("Go.")
    for at in (2, 4):
        assert result.messages[at].tool_results[0].is_error is True
    assert result.output == "It is gone."
    assert scripted.connections == 1 + 3
    scripted.answers = Scripted(ECHO).answers
    await scripted.server.close()  # ends the pause
    assert (await scripted.server.call_tool("echo")).text == "hello"
    await scripted.server.close()


# --- servers that hang


async def test_a_call_that_hangs_times_out() -> None:
    """The server gets a cancellation, and is still used."""
    server = Scripted({"tools/list": tools_listed("hang", "echo"), "tools/call": _hang_or_echo},
                      timeout=30.0, timeouts={"hang": 0.2})  # fmt: skip
    agent = Agent(ScriptedModel([calling("hang"), calling("echo", "c2"), "Hi."]),
                  tools=[server.server])  # fmt: skip
    async with agent:
        result = await agent.send("Go.")
    late, fine = (result.messages[at].tool_results[0] for at in (2, 4))
    assert late.is_error is True
    assert (
        "did not respond within 0.2 seconds; it is unknown whether the call took effect"
        in late.text
    )
    assert fine.text == "hello"
    assert server.connections == 1
    assert "notifications/cancelled" in server.methods()


async def _hang_or_echo(message: dict[str, Any], send: Any) -> Any:
    if message["params"]["name"] == "hang":
        await _never(message, send)
    return text_result("hello")


async def test_cancelling_a_run_cancels_the_call_at_the_server() -> None:
    """At once, even if the server ignores it; another run uses the connection."""
    scripted = Scripted({"tools/list": tools_listed("hang", "echo"), "tools/call": _hang_or_echo})
    agent = Agent(ScriptedModel([calling("hang"), "Hi."]), tools=[scripted.server])
    run = asyncio.ensure_future(agent.send("Go."))
    call = await scripted.hears("tools/call")
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 5)
    told = await scripted.hears("notifications/cancelled")
    assert told["params"]["requestId"] == call["id"]
    assert (await scripted.server.call_tool("echo")).text == "hello"
    assert scripted.connections == 1
    await scripted.server.close()


async def test_cancelling_a_run_that_waits_for_a_process_does_not_hang() -> None:
    """An unresponsive process can be left and closed."""
    server = process()
    agent = Agent(ScriptedModel([calling("hang"), "Hi."]), tools=[server])
    run = asyncio.ensure_future(agent.send("Go."))
    await asyncio.sleep(0.5)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(run, 5)
    await asyncio.wait_for(server.close(), 15)


async def test_cancelling_one_wait_does_not_abort_the_connection() -> None:
    """One run is cancelled while the server starts; the other gets its tools."""
    server = process()
    first = asyncio.ensure_future(server.tools())
    await asyncio.sleep(0.01)
    second = asyncio.ensure_future(server.tools())
    await asyncio.sleep(0.01)
    first.cancel()
    assert {"echo", "hang", "pid"} <= {tool.name for tool in await second}
    await server.close()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: MCPServer.stdio(""), "empty"),
        (lambda: MCPServer.stdio("a\0b"), "NUL"),
        (lambda: MCPServer.http("ftp://example.com"), "must look like https"),
        (lambda: MCPServer.http("http://[::1"), "must look like https"),
        (lambda: MCPServer.http("https://h", headers={"a b": "c"}), "name of an HTTP header"),
        (lambda: MCPServer.http("https://h", headers={"a": "sk-1\r\nX: y"}), "header a must be"),
        (lambda: MCPServer.http("https://h", auth=("user", "sk-1")), "httpx2.Auth"),
        (lambda: MCPServer.stdio("x", timeout=0), "must be positive"),
        (lambda: MCPServer.stdio("x", timeouts={"a": -1}), "must be positive"),
        (lambda: MCPServer.stdio("x", prefix="a b"), "prefix"),
        (lambda: MCPServer.stdio("x", only="abc"), "collection"),
        (lambda: MCPServer("x"), "transport must be"),  # type: ignore[arg-type]
    ],
)
def test_invalid_arguments_are_rejected(make: Callable[[], Any], problem: str) -> None:
    """When a server is created, and without quoting keys."""
    with pytest.raises(InvalidInputError, match=problem) as caught:
        make()
    assert "sk-1" not in str(caught.value)


async def test_lists_are_read_again_when_the_subscription_to_changes_ends() -> None:
    """As long as it holds, a list is reused; afterwards nobody would tell of a change."""
    opened = asyncio.Event()
    ended = asyncio.Event()

    @asynccontextmanager
    async def listen(**_kinds: bool) -> AsyncGenerator[AsyncIterator[object]]:
        async def changes() -> AsyncIterator[object]:
            opened.set()
            yield object()
            await ended.wait()

        yield changes()

    capable = SimpleNamespace(list_changed=True)
    client: Any = SimpleNamespace(
        server_capabilities=SimpleNamespace(tools=capable, prompts=None, resources=None),
        session=SimpleNamespace(initialize_result=None),
        listen=listen,
    )
    transport: Any = SimpleNamespace(notes=lambda: None)
    connection = Connection("a", transport, lambda _connection: {})
    following = asyncio.create_task(connection._follow_changes(client))
    await opened.wait()
    held = connection.is_told_of_changes
    connection.listed["tools"] = object()
    ended.set()
    await following
    assert (held, connection.is_told_of_changes, connection.listed) == (True, False, {})
