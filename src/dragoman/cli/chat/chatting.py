"""A chat from its first line to its last."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dragoman.agent.agent import Agent
from dragoman.cli.chat.choosing import named_model
from dragoman.cli.chat.commands import Quit, chooses_tools, is_command, obey
from dragoman.cli.chat.screens import PipeScreen, Screen
from dragoman.cli.chat.sessions import last_exchange, last_model, opened_history
from dragoman.cli.chat.talk import Talk
from dragoman.cli.chat.toolset import BUILT_IN, tools_named
from dragoman.cli.chat.typed import Lines, PipedLines, TypedLines
from dragoman.cli.endings import USAGE, Ending
from dragoman.cli.history.stores import code_of
from dragoman.cli.opening import opened, settings_of
from dragoman.cli.places import own_model
from dragoman.errors import DragomanError
from dragoman.history.chat import ChatHistory
from dragoman.history.places import default_file
from dragoman.model.functions.tool import Tool
from dragoman.transport.model import Model


@dataclass(frozen=True, kw_only=True)
class Options:
    """What was said on the command line."""

    model: str | None = None
    system: str | None = None
    tools: tuple[str, ...] = ()
    no_tools: bool = False
    is_continued: bool = False
    session: str | None = None
    store: str | None = None
    no_history: bool = False
    max_tokens: int | None = None
    thinking: str | None = None
    usage: bool = False
    dialect: str | None = None
    base_url: str | None = None
    yes: bool = False


def hold(options: Options, *, is_terminal: bool, model: Model | None = None) -> None:
    """Hold a chat until it is left; `model` is one that is open already."""
    _check(options)
    # What the library warns of is said by the command, once.
    logging.getLogger("dragoman").addHandler(logging.NullHandler())
    screen = _screen(is_terminal=is_terminal)
    with asyncio.Runner() as runner, _history(runner, options) as history:
        messages = runner.run(history.messages())
        name = model.name if model is not None else named_model(
            options.model, last_model(messages), is_terminal=is_terminal
        )  # fmt: skip
        tools = _tools(options, name)
        model = model or _model(options, name)
        lines: Lines = _typed(options) if is_terminal else PipedLines()
        talk = Talk(
            agent=Agent(model, tools=tools, system=options.system, **_settings(options)),
            history=history, screen=screen, lines=lines, runner=runner, tools=tools,
            base_url=options.base_url,
            shows_usage=options.usage, may_fetch=options.yes, is_patient=is_terminal,
            chooses_tools=chooses_tools(name), has_limit=options.max_tokens is not None,
        )  # fmt: skip
        try:
            if is_terminal:
                _greet(talk, options)
            _converse(talk)
        finally:
            for each in (*talk.retired, talk.agent.model):
                runner.run(each.close())
            if isinstance(lines, TypedLines):
                lines.keep()


def _check(options: Options) -> None:
    if options.is_continued and (options.session or options.no_history):
        other = "--session" if options.session else "--no-history"
        raise Ending(USAGE, f"--continue goes on with the latest chat, and takes no {other}")
    if options.tools and options.no_tools:
        raise Ending(USAGE, "--tools and --no-tools: which of them?")


def _screen(*, is_terminal: bool) -> Screen:
    if not is_terminal:
        return PipeScreen()
    from dragoman.cli.chat.terminal import TerminalScreen

    return TerminalScreen()


def _typed(options: Options) -> TypedLines:
    kept_at = None if options.no_history else default_file().with_name("chat-lines")
    return TypedLines(kept_at, is_plain=bool(os.environ.get("NO_COLOR")))


@contextmanager
def _history(runner: asyncio.Runner, options: Options) -> Generator[ChatHistory]:
    """The history, open; a store that can't be used ends the command as `history` would."""
    try:
        history = runner.run(
            opened_history(
                options.store, options.session,
                is_continued=options.is_continued, is_kept=not options.no_history,
            )
        )  # fmt: skip
    except DragomanError as error:
        raise Ending(code_of(error), str(error)) from None
    try:
        yield history
    finally:
        runner.run(history.close())


def _model(options: Options, name: str) -> Model:
    base_url, dialect = options.base_url, options.dialect
    settings = settings_of(name, base_url=base_url, dialect=dialect)
    return opened(name, settings, may_fetch=options.yes)


def _tools(options: Options, model: str) -> list[Tool[..., Any]]:
    """The tools: of what runs here our own as well, so that there is something to see."""
    if options.tools or options.no_tools:
        return tools_named(options.tools)
    return tools_named((BUILT_IN,)) if own_model(model) is not None else []


def _settings(options: Options) -> dict[str, Any]:
    effort = options.thinking
    thinking = int(effort) if effort is not None and effort.isdecimal() else effort
    given = {"max_tokens": options.max_tokens, "thinking": thinking}
    return {name: value for name, value in given.items() if value is not None}


# --- how it goes


def _greet(talk: Talk, options: Options) -> None:
    identity = talk.history.identity
    kept = "nothing is kept" if options.no_history else f"kept as {identity.chat}"
    talk.screen.note(f"{talk.agent.model.name} · {kept} · /help lists commands, ctrl-D leaves")
    if talk.tools:
        names = ", ".join(each.name for each in talk.tools)
        example = "" if options.tools else f"; try /tool {_example(talk)}"
        talk.screen.note(f"tools: {names}{example}")
    asked, answered = last_exchange(talk.run(talk.history.messages()))
    if asked is not None:
        talk.screen.note("", f"> {asked.text}")
    if answered is not None:
        talk.screen.told(answered.text)
    talk.take_up()


def _example(talk: Talk) -> str:
    own = own_model(talk.agent.model.name)
    if own is not None and own.kind == "echo":
        return 'calculate {"expression": "6 * 7"}'
    return "now What time is it in Tokyo?"


def _converse(talk: Talk) -> None:
    """Say what is said, until somebody leaves."""
    is_leaving = False
    while True:
        try:
            text = talk.lines.message()
        except EOFError:
            return
        except KeyboardInterrupt:
            if is_leaving or not talk.is_patient:
                return
            is_leaving = True
            talk.screen.note("", "(ctrl-C once more, or ctrl-D, leaves)")
            continue
        is_leaving = False
        try:
            _take(talk, text)
        except Quit:
            return


def _take(talk: Talk, text: str) -> None:
    """Do one thing; with a person, what goes wrong is told and the chat goes on."""
    try:
        if is_command(text):
            obey(talk, text)
        elif text.strip():
            talk.say(text.removeprefix("/") if text.startswith("//") else text)
    except DragomanError as error:
        talk.fail(error)
    except KeyboardInterrupt:
        if not talk.is_patient:
            raise
        talk.screen.end()
        talk.screen.note("(stopped)")
    except Ending as ending:
        if not talk.is_patient or ending.code >= _SIGNALS:
            raise
        talk.screen.complain(ending.message or "that can't be done")


_SIGNALS = 128
