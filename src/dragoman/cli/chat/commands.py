"""The slash commands of a chat: `/model`, `/undo` and the rest."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from dragoman.cli.chat.completion import Candidate, Complete, files, fitting, nothing
from dragoman.cli.chat.conversation_commands import (
    attach,
    copy,
    fork,
    new,
    retry,
    save,
    session_names,
    sessions,
    thinking,
    undo,
    usage,
)
from dragoman.cli.chat.model_commands import (
    call_tool,
    choose_model,
    model_names,
    set_names,
    set_setting,
    system,
    tool_names,
    tool_sources,
    tools,
)
from dragoman.cli.chat.talk import Talk
from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.model.spelling import did_you_mean

_MAX_NAME = 40

_COMMAND = re.compile(r"/(?!/)(?P<name>[^\s/]*)(?:\s+(?P<rest>.*))?", re.DOTALL)


class Quit(Exception):  # noqa: N818 - no error
    """Ends the chat."""


class Command(NamedTuple):
    """A slash command."""

    do: Callable[[Talk, str], None]
    usage: str
    about: str
    complete: Complete = nothing


def is_command(text: str) -> bool:
    """Whether the text is a slash command, not a message to the model.

    Two slashes start a message that begins with one. A path (`/etc/hosts`) is not a command, and
    neither is a multi-line text unless it begins with a known command.

    >>> is_command("/undo"), is_command("//undo"), is_command("/etc/hosts is wrong")
    (True, False, False)
    """
    found = _COMMAND.fullmatch(text)
    if found is None:
        return False
    return "\n" not in text.strip() or found["name"].lower() in _ALIASES | COMMANDS.keys()


def obey(talk: Talk, text: str) -> None:
    """Run a slash command."""
    found = _COMMAND.fullmatch(text)
    name = found["name"].lower() if found else ""
    command = COMMANDS.get(_ALIASES.get(name, name))
    if command is None:
        there = [f"/{each}" for each in COMMANDS]
        known = did_you_mean(f"/{name}", there) or f"; the commands are {', '.join(there)}"
        said = name if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]}…"
        problem = f"there is no command /{said}{known}"
        raise Ending(USAGE, f"{problem}. To start a message with a slash, type //")
    command.do(talk, (found["rest"] or "").strip() if found else "")


async def completions(talk: Talk, text: str) -> list[Candidate]:
    """Completions for the text before the cursor."""
    if not text.startswith("/") or text.startswith("//"):
        return []
    name, space, rest = text[1:].partition(" ")
    if not space:
        known = [(f"/{name}", each.about) for name, each in COMMANDS.items()]
        return fitting(text, known)
    command = COMMANDS.get(_ALIASES.get(name.lower(), name.lower()))
    return [] if command is None else await command.complete(talk, rest.lstrip())


def _help(talk: Talk, _rest: str) -> None:
    talk.screen.table(
        ("command", "description"), [(each.usage, each.about) for each in COMMANDS.values()]
    )
    talk.screen.note(
        "Enter sends; Alt-Enter, or a backslash and Enter, starts a new line. A pasted block is"
        " one message.",
        "Tab completes commands, models, sessions, settings and file names; the up arrow recalls"
        " earlier input.",
        "Ctrl-C stops an answer and keeps the part already received. Ctrl-D leaves the chat.",
    )


def _quit(_talk: Talk, _rest: str) -> None:
    raise Quit


_ALIASES = {"exit": "quit", "?": "help", "session": "sessions", "resume": "sessions"}

COMMANDS = {
    "model": Command(choose_model, "/model [NAME [DIALECT]]", "switch to another model",
                     model_names),
    "system": Command(system, "/system [TEXT]", "show or set the system prompt; `default` resets"),
    "set": Command(set_setting, "/set [NAME VALUE]", "show or change settings, such as usage on",
                   set_names),
    "tools": Command(tools, "/tools [FILE.py]", "list the tools, or load more", tool_sources),
    "tool": Command(call_tool, "/tool NAME [TEXT]", "send a message, and have that tool called",
                    tool_names),
    "attach": Command(attach, "/attach FILE|URL", "attach a file to your next message",
                      files),
    "retry": Command(retry, "/retry", "get another answer to your last message"),
    "undo": Command(undo, "/undo", "take back your last message and its answer"),
    "fork": Command(fork, "/fork [NUMBER]", "go back to an earlier message, in a new branch"),
    "new": Command(new, "/new [NAME]", "start a new chat; this one stays stored"),
    "sessions": Command(sessions, "/sessions [NAME]", "list the chats, or continue one",
                        session_names),
    "save": Command(save, "/save [FILE]", "write the chat to a file: .json, or .md to read",
                    files),
    "copy": Command(copy, "/copy [code]", "copy the last answer, or its last code block"),
    "thinking": Command(thinking, "/thinking", "show the thinking before the last answer"),
    "usage": Command(usage, "/usage", "show tokens and cost so far"),
    "help": Command(_help, "/help", "this list"),
    "quit": Command(_quit, "/quit", "leave"),
}  # fmt: skip
