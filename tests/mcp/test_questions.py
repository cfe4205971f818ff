"""Requests and notifications of servers, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import Context
from mcp.server.mcpserver import MCPServer as SdkServer
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    InputRequiredResult,
    ListRootsRequest,
    SamplingMessage,
    TextContent,
)

from dragoman import Agent, Request
from dragoman.errors import InvalidInputError
from dragoman.mcp import LogMessage, MCPServer, Progress, Question, Sampling
from dragoman.testing import EchoModel, ScriptedModel
from tests.mcp.servers import Scripted, calling, in_process, text_result, tools_listed

pytestmark = pytest.mark.filterwarnings(  # the SDK's servers still offer deprecated features
    "ignore::mcp.shared.exceptions.MCPDeprecationWarning"
)

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ERAS = pytest.mark.parametrize("protocol", ["auto", "handshake"])


async def asked(ctx: Context, request: Any, read: Callable[[Any], str]) -> Any:
    """By a request of the server, or by a result that asks for input (since 2026-07-28)."""
    if ctx.protocol_version == "2026-07-28":
        answers = ctx.input_responses
        if answers is None:
            return InputRequiredResult(input_requests={"q": request})
        return read(answers["q"])
    session: Any = ctx.session
    params = request.params
    if isinstance(request, ListRootsRequest):
        return read(await session.list_roots())
    if isinstance(request, CreateMessageRequest):
        return read(await session.create_message(
            params.messages, max_tokens=params.max_tokens,
            system_prompt=params.system_prompt, temperature=params.temperature,
        ))  # fmt: skip
    if isinstance(params, ElicitRequestURLParams):
        return read(await session.elicit_url(params.message, params.url, "e1"))
    return read(await session.elicit(params.message, params.requested_schema))


def asking_server() -> SdkServer:
    """Tools that ask."""
    server = SdkServer("asking")

    @server.tool()
    async def ask_user(ctx: Context) -> str | InputRequiredResult:
        """Ask the user."""
        form = ElicitRequestFormParams(message="Who are you?", requested_schema=FORM)
        return await asked(  # type: ignore[no-any-return]
            ctx, ElicitRequest(params=form), lambda it: f"{it.action} {it.content}"
        )

    @server.tool()
    async def send_user(ctx: Context) -> str | InputRequiredResult:
        """Send the user somewhere."""
        place = ElicitRequestURLParams(
            message="Sign in.", url="https://example.com/in", elicitation_id="e1"
        )
        return await asked(ctx, ElicitRequest(params=place), lambda it: str(it.action))  # type: ignore[no-any-return]

    @server.tool()
    async def ask_model(ctx: Context) -> str | InputRequiredResult:
        """Ask the model."""
        message = SamplingMessage(role="user", content=TextContent(type="text", text="Rhyme."))
        params = CreateMessageRequestParams(
            messages=[message], max_tokens=100_000, system_prompt="Be brief.", temperature=0.5
        )
        return await asked(  # type: ignore[no-any-return]
            ctx, CreateMessageRequest(params=params), lambda it: f"{it.model}: {it.content.text}"
        )

    @server.tool()
    async def ask_roots(ctx: Context) -> str | InputRequiredResult:
        """Ask for folders."""
        return await asked(  # type: ignore[no-any-return]
            ctx, ListRootsRequest(), lambda it: " ".join(str(each.uri) for each in it.roots)
        )

    return server


# --- elicitation


@ERAS
@pytest.mark.parametrize("is_async", [False, True])
async def test_the_user_is_asked(protocol: str, is_async: bool) -> None:
    """By a function, plain or async; its answer reaches the server."""
    questions: list[Question] = []

    def answer(question: Question) -> dict[str, Any]:
        questions.append(question)
        return {"name": "Bo"}

    async def answer_soon(question: Question) -> dict[str, Any]:
        return answer(question)

    elicit: Any = answer_soon if is_async else answer
    async with in_process(asking_server(), protocol=protocol, elicit=elicit) as server:
        assert (await server.call_tool("ask_user")).text == "accept {'name': 'Bo'}"
    (question,) = questions
    assert (question.server, question.message, question.url) == ("sdk", "Who are you?", None)
    assert question.schema["properties"] == FORM["properties"]
    assert "Who" not in repr(question)


def _raises(_question: Question) -> bool:
    raise RuntimeError


@ERAS
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (False, "decline None"),
        (None, "cancel None"),
        ({"age": 7}, "cancel None"),  # not what was asked for
        (True, "decline None"),  # nothing was filled in
    ],
)
async def test_a_user_who_does_not_answer(protocol: str, answer: Any, outcome: str) -> None:
    """Declines or cancels; invalid answers are not sent."""
    elicit = lambda _: answer  # noqa: E731 - one line
    async with in_process(asking_server(), protocol=protocol, elicit=elicit) as server:
        assert (await server.call_tool("ask_user")).text == outcome


@ERAS
async def test_a_url_is_shown_and_not_opened(protocol: str) -> None:
    """The function decides; no request is sent to it."""
    seen: list[str | None] = []

    def answer(question: Question) -> bool:
        seen.append(question.url)
        return True

    async with in_process(asking_server(), protocol=protocol, elicit=answer) as server:
        assert (await server.call_tool("send_user")).text == "accept"
    assert seen == ["https://example.com/in"]


@ERAS
@pytest.mark.parametrize("elicit", [None, _raises])
async def test_without_a_function_the_server_is_refused(protocol: str, elicit: Any) -> None:
    """Also if the function fails; the server doesn't learn why."""
    async with in_process(asking_server(), protocol=protocol, elicit=elicit) as server:
        result = await server.call_tool("ask_user")
    assert result.is_error is True
    assert "RuntimeError" not in result.text


@ERAS
async def test_time_that_a_user_takes_is_not_the_servers(protocol: str) -> None:
    """The call's timeout is paused while the server waits for us."""

    async def answer(_question: Question) -> dict[str, Any]:
        await asyncio.sleep(0.6)
        return {"name": "Bo"}

    server = in_process(asking_server(), protocol=protocol, elicit=answer, timeout=0.4)
    async with server:
        assert (await server.call_tool("ask_user")).is_error is False


# --- sampling


@ERAS
async def test_a_server_uses_our_model(protocol: str) -> None:
    """With its limits, once somebody has approved."""
    seen: list[Request] = []

    async def approve(request: Request) -> bool:
        seen.append(request)
        return True

    model = ScriptedModel(["Time, prime."])
    sampling = Sampling(model, approve, max_tokens=50)
    async with in_process(asking_server(), protocol=protocol, sampling=sampling) as server:
        assert (await server.call_tool("ask_model")).text == "scripted: Time, prime."
    (request,) = seen
    assert [each.messages for each in model.requests] == [request.messages]
    assert request.messages[0].text == "Rhyme."
    assert request.system[0].text == "Be brief."  # type: ignore[union-attr]
    assert (request.sampling.max_tokens, request.sampling.temperature) == (50, 0.5)
    assert request.tools == ()


@ERAS
@pytest.mark.parametrize("how", ["none", "refused", "fails", "used up"])
async def test_sampling_is_refused(protocol: str, how: str) -> None:
    """Without a model, or without approval; if the model fails, without details."""
    model = ScriptedModel([RuntimeError("sk-1")] if how == "fails" else ["Time."])
    sampling = {
        "none": None,
        "refused": Sampling(model, lambda _request: False),
        "fails": Sampling(model, approve=True),
        "used up": Sampling(model, approve=True, max_requests=0),
    }[how]
    async with in_process(asking_server(), protocol=protocol, sampling=sampling) as server:
        result = await server.call_tool("ask_model")
    assert result.is_error is True
    assert "sk-1" not in result.text
    assert len(model.requests) == (1 if how == "fails" else 0)


@pytest.mark.parametrize("approve", [False, None, "yes"])
def test_sampling_needs_an_approval_function(approve: Any) -> None:
    """Or True; nothing is allowed by accident."""
    with pytest.raises(InvalidInputError, match="approve"):
        Sampling(ScriptedModel(["Hi."]), approve)


# --- roots


@ERAS
async def test_a_server_gets_the_folders(protocol: str, tmp_path: Path) -> None:
    """Those given, and others after a change."""
    server = in_process(asking_server(), protocol=protocol, roots=[tmp_path, "file:///srv"])
    async with server:
        told = (await server.call_tool("ask_roots")).text
        assert told.split() == [tmp_path.as_uri(), "file:///srv"]
        await server.set_roots([tmp_path / "other"])
        assert (await server.call_tool("ask_roots")).text == (tmp_path / "other").as_uri()


async def test_a_change_of_folders_is_announced() -> None:
    """To servers of earlier versions, which cache them."""
    scripted = Scripted(roots=[])
    await scripted.server.set_roots(["/srv"])
    await scripted.hears("notifications/roots/list_changed")
    await scripted.server.close()
    with pytest.raises(InvalidInputError, match="without roots"):
        await Scripted().server.set_roots(["/srv"])


# --- progress, logs


@ERAS
async def test_progress_is_reported(protocol: str) -> None:
    """With the call that it belongs to."""
    sdk = SdkServer("slow")

    @sdk.tool()
    async def work(ctx: Context) -> str:
        """Work."""
        await ctx.report_progress(1, 2, "half")
        await ctx.report_progress(2, 2)
        return "done"

    told: list[Progress] = []
    server = in_process(sdk, protocol=protocol, on_progress=told.append, prefix="p")
    agent = Agent(ScriptedModel([calling("p_work", "call_9"), "Done."]), tools=[server])
    async with agent:
        await agent.send("Go.")
    assert [(each.progress, each.total, each.message) for each in told] == [
        (1, 2, "half"), (2, 2, None),
    ]  # fmt: skip
    assert {(each.server, each.tool, each.call_id) for each in told} == {
        ("sdk", "p_work", "call_9")
    }
    assert "half" not in repr(told[0])


@ERAS
async def test_logs_are_reported_from_a_level_on(protocol: str) -> None:
    """Only on request."""
    sdk = SdkServer("talking")

    @sdk.tool()
    async def work(ctx: Context) -> str:
        """Work."""
        session: Any = ctx
        await session.debug("quiet")
        await session.warning("loud", logger_name="inner")
        return "done"

    told: list[LogMessage] = []
    server = in_process(sdk, protocol=protocol, on_log=told.append, log_level="warning")
    async with server:
        assert (await server.call_tool("work")).text == "done"
        for _ in range(100):
            await asyncio.sleep(0.01)
            if told:
                break
    assert ("warning", "loud", "inner") in [(each.level, each.data, each.logger) for each in told]
    if protocol == "auto":  # servers of earlier versions may send more than they should
        assert [each.level for each in told] == ["warning"]
    assert "loud" not in repr(told[-1])


async def test_a_level_is_set_once() -> None:
    """For servers of earlier versions."""
    scripted = Scripted({"logging/setLevel": {}}, on_log=print, log_level="error")
    await scripted.server.open()
    asked = await scripted.hears("logging/setLevel")
    assert asked["params"] == {"level": "error"}
    await scripted.server.close()


# --- changes


def growing_server() -> SdkServer:
    """A server that gets another tool, and tells so."""
    server = SdkServer("growing")

    @server.tool()
    async def grow(ctx: Context) -> str:
        """Grow."""

        def grown() -> str:
            """There is more."""
            return "more"

        server.add_tool(grown)
        await ctx.notify_tools_changed()
        return "grown"

    return server


async def test_a_new_tool_is_available_in_the_same_run() -> None:
    """The model gets it with the next request."""
    server = in_process(growing_server())
    script = [calling("grow"), calling("grown", "call_2"), "Done."]
    agent: Any = Agent(ScriptedModel(script), tools=[server])
    async with agent:
        await server.tools()
        await asyncio.sleep(0.1)  # until it listens
        result = await agent.send("Go.")
    assert [[each.name for each in one.tools] for one in agent.model.requests] == [
        ["grow"], ["grow", "grown"], ["grow", "grown"],
    ]  # fmt: skip
    assert result.messages[4].tool_results[0].text == "more"


async def test_a_list_is_requested_when_it_changed_and_not_before() -> None:
    """For servers of an earlier version, and reported on request."""
    changes: list[tuple[str, str | None]] = []

    async def call(_message: Any, send: Any) -> Any:
        scripted.answers["tools/list"] = tools_listed("do", "more")
        await send({"method": "notifications/tools/list_changed"})
        await asyncio.sleep(0.05)
        return text_result("done")

    scripted = Scripted({"tools/list": tools_listed("do"), "tools/call": call},
                        on_change=lambda *what: changes.append(what))  # fmt: skip
    for _ in range(3):
        assert len(await scripted.server.tools()) == 1
    await scripted.server.call_tool("do")
    for _ in range(3):
        assert len(await scripted.server.tools()) == 2
    assert scripted.methods().count("tools/list") == 2
    assert changes == [("tools", None)]
    await scripted.server.close()


async def test_a_change_during_a_list_request_is_not_missed() -> None:
    """The list may be outdated: it is requested again."""

    async def old_list(message: dict[str, Any], send: Any) -> Any:
        scripted.answers["tools/list"] = tools_listed("do", "more")
        await send({"method": "notifications/tools/list_changed"})
        await asyncio.sleep(0.05)
        await send({"id": message["id"], "result": tools_listed("do")})

    scripted = Scripted({"tools/list": old_list})
    await scripted.server.open()
    assert len(await scripted.server.tools()) == 1
    assert len(await scripted.server.tools()) == 2
    await scripted.server.close()


def test_deprecated_features_are_not_used() -> None:
    """The SDK warns of what is gone in the newest version; none of it is called here."""
    source = Path(MCPServer.stdio.__func__.__code__.co_filename).parent  # type: ignore[attr-defined]
    text = "".join(path.read_text(encoding="utf-8") for path in source.glob("*.py"))
    assert "send_roots_list_changed(" not in text
    assert "subscribe_resource(" not in text
    with warnings.catch_warnings():
        warnings.simplefilter("error", MCPDeprecationWarning)
        assert MCPServer.stdio("x").name == "x"


async def test_requests_at_once_do_not_exceed_the_limit() -> None:
    """However many are asked for while the first ones wait for approval; a rejection is free."""
    decisions: list[bool] = [False, True, True]
    asked = 0

    async def approve(_request: Request) -> bool:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0.01)
        return decisions.pop(0) if decisions else True

    sampling = Sampling(EchoModel(), approve, max_requests=3)
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Hi"))
    params = CreateMessageRequestParams(messages=[message], max_tokens=10)
    answers = await asyncio.gather(*[sampling.answer(params) for _ in range(20)])
    assert sum(isinstance(each, CreateMessageResult) for each in answers) == 2
    assert asked == 3
    later = [await sampling.answer(params) for _ in range(3)]
    assert [isinstance(each, CreateMessageResult) for each in later] == [True, False, False]
