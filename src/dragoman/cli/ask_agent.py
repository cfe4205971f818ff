"""Questions that need an agent: with tools, or as part of a stored chat."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.answer_output import UNKNOWN
from dragoman.cli.chat.calls import call_line, result_line
from dragoman.cli.chat.chat_state import KEY, state_of
from dragoman.cli.chat.continuing import is_known
from dragoman.cli.chat.sessions import last_model, opened_history
from dragoman.cli.chat.toolset import tools_named
from dragoman.cli.costs import usage_line
from dragoman.cli.exit_codes import Ending, complain
from dragoman.cli.history.stores import USUAL
from dragoman.cli.mcp_tools import close, servers_named
from dragoman.cli.screen import harmless_line
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.agent import Agent, Result
    from dragoman.cli.answer_output import Printer
    from dragoman.cli.ask_options import Options
    from dragoman.cli.chat.chat_state import ChatState
    from dragoman.history.chat import ChatHistory
    from dragoman.model.requests import Request
    from dragoman.model.responses import Response
    from dragoman.model.tools import ToolCall
    from dragoman.transport.model import OpenedModel

_NO_TERMINAL = "it needs approval, and there is no terminal to ask on"
_NOT_STORED = "the question and the answer were not stored"


async def answer_alone(
    model: OpenedModel, request: Request, printer: Printer, options: Options, state: ChatState
) -> None:
    """Ask a single question, print the answer, and store both."""
    from dragoman.cli.answer_output import answered
    from dragoman.providers.prices import LISTED

    response = await answered(model, request, printer)
    cost = LISTED.cost_of_response(response, model.name)
    try:
        printer.show(response, request.output, took=usage_line(response.usage, cost))
    finally:
        if not options.no_history and response.choices:
            await _keep(request, response, options, state)


async def _keep(request: Request, response: Response, options: Options, state: ChatState) -> None:
    """Store the question and the answer as a new chat."""
    asked = request.messages[0].with_metadata(KEY, state.to_metadata())
    message = response.message
    if message.usage is None:
        message = message.replace(usage=response.usage)
    async with _history(options) as history:
        try:
            await history.extend([asked, message])
        except (DragomanError, OSError) as error:
            complain(f"{_NOT_STORED}: {error}")


async def answer_with_tools(
    model: OpenedModel, request: Request, printer: Printer, options: Options, state: ChatState
) -> None:
    """Ask, run the tools that the model calls, and print the answer."""
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
        given: dict[str, Any] = {"history": history}
        if request.output is not None:
            given["output"] = request.output.schema
        asked = request.messages[0].with_metadata(KEY, state.to_metadata())
        response, result = await _answered(agent, [asked], given, printer)
    if response is not None:
        value = UNKNOWN if request.output is None else result.output
        took = usage_line(result.usage, result.cost)
        printer.show(response, request.output, value=value, took=took)


async def kept_state(options: Options) -> ChatState:
    """The settings stored with the chat that is continued."""
    async with _history(options) as history:
        messages = await history.messages()
    state = state_of(messages)
    return state if is_known(state.model) else replace(state, model=last_model(messages))


@asynccontextmanager
async def _history(options: Options) -> AsyncGenerator[ChatHistory]:
    """The named chat, or a new one; a new one that can't be stored is only a warning."""
    history: ChatHistory | None = None
    try:
        history = await opened_history(
            options.store, options.session, is_continued=options.is_continued,
            is_kept=not options.no_history,
        )  # fmt: skip
    except (DragomanError, OSError, Ending) as error:
        if options.is_in_chat:
            raise
        complain(f"{_NOT_STORED}: {error}")
    if history is None:
        history = await opened_history(USUAL, None, is_continued=False, is_kept=False)
    try:
        yield history
    finally:
        await history.close()
        await history.storage.close()


async def _answered(
    agent: Agent, content: Sequence[Any], given: dict[str, Any], printer: Printer
) -> tuple[Response | None, Result[Any]]:
    """The final response, after as many rounds of tool calls as it takes."""
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
    from dragoman.agent import ResponseReceived, TextDelta, ThinkingDelta, ToolFinished

    match event:
        case TextDelta() if printer.streams:
            printer.say("text", event.text)
        case ThinkingDelta() if printer.streams:
            printer.say("thinking", event.text)
        case ToolFinished():
            printer.stop()
            if sys.stderr.isatty():
                click.echo(f"⚙ {call_line(event.call)} → {result_line(event.result)}", err=True)
        case ResponseReceived():
            return event.response
        case _:
            pass
    return None


def _decided(calls: Sequence[ToolCall]) -> dict[str, bool | str]:
    """The user's decision on each call that needs approval; without a terminal, no."""
    is_asked = sys.stdin.isatty() and sys.stderr.isatty()
    decided: dict[str, bool | str] = {}
    for call in calls:
        if is_asked:
            question = f"The model wants to run {call_line(call)}. Allow it?"
            decided[call.id] = click.confirm(question, default=False, err=True)
        else:
            complain(f"{harmless_line(call.name)} was not run: {_NO_TERMINAL}")
            decided[call.id] = _NO_TERMINAL
    return decided
