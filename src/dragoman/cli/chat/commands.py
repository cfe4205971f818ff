"""What can be said to a chat that is not for the model: `/model`, `/undo` and the rest."""

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

_LONGEST = 40

_COMMAND = re.compile(r"/(?!/)(?P<name>[^\s/]*)(?:\s+(?P<rest>.*))?", re.DOTALL)


class Quit(Exception):  # noqa: N818 - no error
    """The chat is over."""


class Command(NamedTuple):
    """Something that can be done."""

    do: Callable[[Talk, str], None]
    usage: str
    about: str
    complete: Complete = nothing


def is_command(text: str) -> bool:
    """Whether a message is for the chat.

    Two slashes begin a message with one; a path (`/etc/hosts`) is no command, and neither is a
    text of several lines unless it begins with one that there is.

    >>> is_command("/undo"), is_command("//undo"), is_command("/etc/hosts is wrong")
    (True, False, False)
    """
    found = _COMMAND.fullmatch(text)
    if found is None:
        return False
    return "\n" not in text.strip() or found["name"].lower() in _ALIASES | COMMANDS.keys()


def obey(talk: Talk, text: str) -> None:
    """Do what a line that begins with a slash says."""
    found = _COMMAND.fullmatch(text)
    name = found["name"].lower() if found else ""
    command = COMMANDS.get(_ALIASES.get(name, name))
    if command is None:
        there = [f"/{each}" for each in COMMANDS]
        known = did_you_mean(f"/{name}", there) or f"; there are {', '.join(there)}"
        said = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        raise Ending(USAGE, f"there is no /{said}{known}. Two slashes begin a message with one")
    command.do(talk, (found["rest"] or "").strip() if found else "")


async def completions(talk: Talk, text: str) -> list[Candidate]:
    """What could stand where the cursor is, after this text."""
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
        ("command", "what it does"), [(each.usage, each.about) for each in COMMANDS.values()]
    )
    talk.screen.note(
        "Enter sends; Alt-Enter, or a backslash and Enter, begins a new line. A pasted block is"
        " one message.",
        "Tab completes commands, models, sessions, settings and file names; the arrow up has what"
        " you typed before.",
        "Ctrl-C stops an answer and keeps the part already received. Ctrl-D leaves.",
    )


def _quit(_talk: Talk, _rest: str) -> None:
    raise Quit


_ALIASES = {"exit": "quit", "?": "help", "session": "sessions", "resume": "sessions"}

COMMANDS = {
    "model": Command(choose_model, "/model [NAME [DIALECT]]", "switch to another model",
                     model_names),
    "system": Command(system, "/system [TEXT]", "show or change the instructions; `default`: none"),
    "set": Command(set_setting, "/set [NAME VALUE]", "settings: temperature 0.2, usage on, …",
                   set_names),
    "tools": Command(tools, "/tools [FILE.py]", "list the tools, or load more", tool_sources),
    "tool": Command(call_tool, "/tool NAME [TEXT]", "say something, and have that tool called",
                    tool_names),
    "attach": Command(attach, "/attach FILE|URL", "send a file along with your next message",
                      files),
    "retry": Command(retry, "/retry", "get another answer to your last message"),
    "undo": Command(undo, "/undo", "take back your last message and its answer"),
    "fork": Command(fork, "/fork [NUMBER]", "go back to an earlier message, on a new branch"),
    "new": Command(new, "/new [NAME]", "start a new chat; this one is kept"),
    "sessions": Command(sessions, "/sessions [NAME]", "list the chats, or go on with one",
                        session_names),
    "save": Command(save, "/save [FILE]", "write the chat to a file: .json, or .md to read",
                    files),
    "copy": Command(copy, "/copy [code]", "copy the last answer, or its last code block"),
    "thinking": Command(thinking, "/thinking", "show what the model thought before its answer"),
    "usage": Command(usage, "/usage", "tokens and cost so far"),
    "help": Command(_help, "/help", "this list"),
    "quit": Command(_quit, "/quit", "leave"),
}  # fmt: skip
