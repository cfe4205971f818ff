"""A question that takes an agent: with tools to call, or as part of a chat that is kept."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.answer_output import UNKNOWN
from dragoman.cli.chat.calls import call_line, result_line
from dragoman.cli.chat.sessions import last_model, opened_history
from dragoman.cli.chat.toolset import tools_named
from dragoman.cli.exit_codes import complain
from dragoman.cli.mcp_tools import close, servers_named
from dragoman.cli.screen import harmless_line

if TYPE_CHECKING:
    from dragoman.agent import Agent, Result
    from dragoman.cli.answer_output import Printer
    from dragoman.cli.ask_options import Options
    from dragoman.history.chat import ChatHistory
    from dragoman.model.requests import Request
    from dragoman.model.responses import Response
    from dragoman.model.tools import ToolCall
    from dragoman.transport.model import OpenedModel

_NOBODY = "nobody is here to allow it"


async def answer_with_tools(
    model: OpenedModel, request: Request, printer: Printer, options: Options
) -> None:
    """Ask, run what the model calls, and print the answer."""
    from dragoman.agent import Agent

    servers = servers_named(options.mcp, options.mcp_config)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(model)
        history = await stack.enter_async_context(_history(options))
        stack.push_async_callback(close, servers)
        agent = Agent(
            model,
            tools=[*tools_named(options.tool_names), *servers],
            system=options.instructions,
            **options.settings,
        )
        given: dict[str, Any] = {"history": history} if history is not None else {}
        if request.output is not None:
            given["output"] = request.output.schema
        response, result = await _answered(
            agent, [*request.messages[0].parts], given, printer
        )  # fmt: skip
    if response is not None:
        value = UNKNOWN if request.output is None else result.output
        printer.show(response, request.output, value=value, usage=result.usage)


async def kept_model(options: Options) -> str | None:
    """The model that spoke last in the chat that is continued."""
    async with _history(options) as history:
        return None if history is None else last_model(await history.messages())


@asynccontextmanager
async def _history(options: Options) -> AsyncGenerator[ChatHistory | None]:
    if not options.is_kept:
        yield None
        return
    history = await opened_history(
        options.store, options.session, is_continued=options.is_continued, is_kept=True
    )
    try:
        yield history
    finally:
        await history.close()
        await history.storage.close()


async def _answered(
    agent: Agent, content: Sequence[Any], given: dict[str, Any], printer: Printer
) -> tuple[Response | None, Result[Any]]:
    """The last response, after as many rounds as it takes."""
    response: Response | None = None
    while True:
        stream = agent.stream(*content, **given)
        try:
            async with stream:
                async for event in stream.events():
                    response = _heard(event, printer) or response
        finally:
            printer.stop()
        if not stream.result.deferred:
            return response, stream.result
        content = ()
        before = given.get("history") or stream.result.messages
        given = {**given, "history": before, "approvals": _decided(stream.result.deferred)}


def _heard(event: Any, printer: Printer) -> Response | None:
    from dragoman.agent import Answered, TextDelta, ThinkingDelta, ToolFinished

    match event:
        case TextDelta() if printer.streams:
            printer.say("text", event.text)
        case ThinkingDelta() if printer.streams:
            printer.say("thinking", event.text)
        case ToolFinished():
            printer.stop()
            if sys.stderr.isatty():
                click.echo(f"⚙ {call_line(event.call)} → {result_line(event.result)}", err=True)
        case Answered():
            return event.response
        case _:
            pass
    return None


def _decided(calls: Sequence[ToolCall]) -> dict[str, bool | str]:
    """What the user says to calls that need approval; without anybody there, no."""
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    decided: dict[str, bool | str] = {}
    for call in calls:
        if is_asked:
            question = f"The model wants to run {call_line(call)}. Allow it?"
            decided[call.id] = click.confirm(question, default=False, err=True)
        else:
            complain(f"{harmless_line(call.name)} was not run: {_NOBODY}")
            decided[call.id] = _NOBODY
    return decided
