"""Runs a chat from start to end."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import click

from dragoman.agent import Agent
from dragoman.cli.chat.chat_state import state_of
from dragoman.cli.chat.choosing import chosen_model, small_model_line
from dragoman.cli.chat.commands import Quit, completions, is_command, obey
from dragoman.cli.chat.continuing import Agree, continued, described
from dragoman.cli.chat.conversation_commands import show_last
from dragoman.cli.chat.kept_lines import KeptLines
from dragoman.cli.chat.model_commands import chooses_tools, tell_losses
from dragoman.cli.chat.options import Options
from dragoman.cli.chat.screens import PipeScreen, Screen
from dragoman.cli.chat.sessions import last_model, name_of, opened_history
from dragoman.cli.chat.talk import Talk
from dragoman.cli.chat.toolset import BUILT_IN, tools_named
from dragoman.cli.chat.typed import Lines, PipedLines, PlainLines
from dragoman.cli.exit_codes import INTERRUPTED, TERMINATED, USAGE, Ending, complain, fault
from dragoman.cli.history.stores import code_of
from dragoman.cli.mcp_tools import close, servers_named
from dragoman.cli.model_aliases import Chosen
from dragoman.cli.model_opening import opened, settings_of
from dragoman.cli.provider_status import own_model
from dragoman.errors import DragomanError
from dragoman.history.chat import ChatHistory
from dragoman.history.storage_urls import default_file
from dragoman.model.functions.tool import Tool
from dragoman.transport.model import Model


def hold(options: Options, *, is_terminal: bool, model: Model | None = None) -> None:
    """Run a chat until the user leaves; `model` may be one that is already open."""
    _check(options)
    # The command itself reports what the library would log as a warning.
    logging.getLogger("dragoman").addHandler(logging.NullHandler())
    screen = _screen(is_terminal=is_terminal)
    with asyncio.Runner() as runner, _history(runner, options) as history:
        talk = _begun(options, runner, history, screen, model=model, is_terminal=is_terminal)
        try:
            if is_terminal:
                _greet(talk, options)
            tell_losses(talk)
            _converse(talk)
        finally:
            runner.run(close(talk.servers))
            for each in (*talk.retired, talk.agent.model):
                runner.run(each.close())
            if talk.history is not history:
                runner.run(talk.history.close())


def _begun(
    options: Options, runner: asyncio.Runner, history: ChatHistory, screen: Screen, *,
    model: Model | None, is_terminal: bool,
) -> Talk:  # fmt: skip
    """The chat with everything it needs, before the first message."""
    messages = runner.run(history.messages())
    state = state_of(messages)
    options = continued(options, state, _asks(is_terminal=is_terminal))
    chosen = Chosen(model.name) if model is not None else chosen_model(
        options.model, last_model(messages), is_terminal=is_terminal
    )  # fmt: skip
    base_url = options.base_url or chosen.base_url
    tools = _tools(options, chosen.name)
    servers = servers_named(options.mcp, options.mcp_config)
    settings = settings_of(chosen.name, base_url=base_url, dialect=options.dialect) if (
        model is None
    ) else {}  # fmt: skip
    may_fetch = options.yes or chosen.is_agreed
    model = model or opened(chosen.name, settings, may_fetch=may_fetch)
    screen.shows_thinking = options.show_thinking
    talk = Talk(
        agent=Agent(
            model, tools=[*tools, *servers], system=options.system or None, **options.settings
        ),
        history=history, screen=screen, lines=PipedLines(), runner=runner, tools=tools,
        servers=servers, tool_names=options.tools, named=options.model or chosen.name,
        dialect=options.dialect,
        base_url=base_url, given_url=options.base_url, system=options.system or None,
        settings=dict(options.settings),
        template=options.template, shows_usage=options.usage,
        shows_thinking=options.show_thinking, may_fetch=options.yes, is_patient=is_terminal,
        chooses_tools=chooses_tools(chosen.name), is_kept=not options.no_history,
        is_introduced=chosen.is_agreed or bool(messages),
    )  # fmt: skip
    if is_terminal:
        talk.lines = _typed(talk)
    return talk


def _asks(*, is_terminal: bool) -> Agree:
    """A function that asks the user before a stored chat's tools or address are used."""

    def agree(question: str) -> bool:
        if is_terminal:
            try:
                return click.confirm(question, default=True)
            except click.Abort:
                raise Ending(INTERRUPTED, "interrupted") from None
        complain(f"{question} There is no terminal to ask on: pass it on the command line instead")
        return False

    return agree


def _check(options: Options) -> None:
    if options.is_continued and (options.session or options.no_history):
        other = "--session" if options.session else "--no-history"
        raise Ending(USAGE, f"--continue can't be combined with {other}")
    if options.tools and options.no_tools:
        raise Ending(USAGE, "--tools and --no-tools can't be combined")


def _screen(*, is_terminal: bool) -> Screen:
    if not is_terminal:
        return PipeScreen()
    from dragoman.cli.chat.terminal import TerminalScreen

    return TerminalScreen()


def _typed(talk: Talk) -> Lines:
    """Where a person types: an editor, or plain lines on a dumb terminal."""
    kept = KeptLines(default_file().with_name("chat-lines")) if talk.is_kept else None
    if os.environ.get("TERM", "").lower() in {"dumb", "unknown"}:
        return PlainLines(kept)
    try:
        from dragoman.cli.chat.editor import EditedLines
    except ModuleNotFoundError:  # an environment installed before it became part of the extra
        return PlainLines(kept)
    return EditedLines(talk.run, kept, lambda text: completions(talk, text))


@contextmanager
def _history(runner: asyncio.Runner, options: Options) -> Generator[ChatHistory]:
    """The open history; a store that can't be used exits as in `dragoman history`."""
    try:
        history = runner.run(
            opened_history(
                options.store, options.session,
                is_continued=options.is_continued, is_kept=not options.no_history,
            )
        )  # fmt: skip
    except DragomanError as error:
        raise Ending(code_of(error), str(error)) from None
    storage = history.storage  # passed in, so closing the history doesn't close it
    try:
        yield history
    finally:
        runner.run(history.close())
        runner.run(storage.close())


def _tools(options: Options, model: str) -> list[Tool[..., Any]]:
    """The tools; local models get the built-in ones by default, so that users can try them."""
    if options.tools or options.no_tools:
        return tools_named(options.tools)
    return tools_named((BUILT_IN,)) if own_model(model) is not None else []


# --- the conversation


def _greet(talk: Talk, options: Options) -> None:
    identity = talk.history.identity
    kept = "not stored" if options.no_history else f"stored as {name_of(identity)}"
    talk.screen.note(f"{talk.agent.model.name} · {kept} · /help lists commands, Ctrl-D leaves")
    if not talk.chooses_tools and not talk.is_introduced:
        talk.screen.note(small_model_line())
    if talk.offered:
        names = ", ".join(each.name for each in talk.offered)
        example = "" if talk.tool_names or talk.servers else f"; try /tool {_example(talk)}"
        talk.screen.note(f"tools: {names}{example}")
    for line in described(talk):
        talk.screen.note(line)
    show_last(talk)
    talk.take_up()


def _example(talk: Talk) -> str:
    own = own_model(talk.agent.model.name)
    if own is not None and own.kind == "echo":
        return 'calculate {"expression": "6 * 7"}'
    return "now What time is it?"


def _converse(talk: Talk) -> None:
    """Send each message until the user leaves."""
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
            talk.screen.note("(press Ctrl-C again, or Ctrl-D, to leave)")
            continue
        is_leaving = False
        try:
            _take(talk, text)
        except Quit:
            return


def _take(talk: Talk, text: str) -> None:
    """Handle one input; on a terminal, an error is shown and the chat goes on."""
    try:
        _do(talk, text)
    except (Quit, EOFError):
        raise
    except KeyboardInterrupt:
        if not talk.is_patient:
            raise
        _end_drawing(talk)
        talk.screen.note("(stopped)")
    except Ending as ending:
        if not talk.is_patient or ending.code == TERMINATED:
            raise
        _end_drawing(talk)
        talk.screen.complain(ending.message or "that failed")
    except SystemExit:
        if not talk.is_patient:
            raise
        _end_drawing(talk)
        talk.screen.complain("a tool tried to end the program; the chat goes on")
        talk.let_be()
    except Exception as error:
        if not talk.is_patient or isinstance(error, BrokenPipeError):
            raise
        _end_drawing(talk)
        talk.screen.complain(_problem(error))


def _do(talk: Talk, text: str) -> None:
    try:
        if is_command(text):
            obey(talk, text)
        elif text.strip():
            talk.say(text.removeprefix("/") if text.startswith("//") else text)
    except DragomanError as error:
        talk.fail(error)


def _end_drawing(talk: Talk) -> None:
    with suppress(Exception, KeyboardInterrupt):
        talk.screen.end()


def _problem(error: BaseException) -> str:
    if isinstance(error, OSError):
        name = f"{error.filename}: " if isinstance(error.filename, str) else ""
        return f"{name}{error.strerror or type(error).__name__}"
    return fault(error)
