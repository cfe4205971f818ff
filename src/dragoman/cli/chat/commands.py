"""What can be said to a chat that is not for the model: `/model`, `/undo` and the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from dragoman.cli.chat.saving import save
from dragoman.cli.chat.sessions import go_back_before, prompts
from dragoman.cli.chat.talk import Talk
from dragoman.cli.endings import USAGE, Ending
from dragoman.cli.opening import opened, settings_of
from dragoman.cli.places import own_model

_PROMPTS = 10
_PREVIEW = 70


class Quit(Exception):  # noqa: N818 - no error
    """The chat is over."""


class Command(NamedTuple):
    """Something that can be done."""

    do: Callable[[Talk, str], None]
    usage: str
    about: str


def is_command(text: str) -> bool:
    """Whether a message is for the chat; two slashes begin a message with one."""
    return text.startswith("/") and not text.startswith("//")


def obey(talk: Talk, text: str) -> None:
    """Do what a line that begins with a slash says."""
    name, _, rest = text[1:].strip().partition(" ")
    command = COMMANDS.get(name.lower())
    if command is None:
        known = ", ".join(f"/{name}" for name in COMMANDS)
        msg = f"there is no /{name}; there are {known}. Two slashes begin a message with one"
        raise Ending(USAGE, msg)
    command.do(talk, rest.strip())


# --- models and tools


def _model(talk: Talk, rest: str) -> None:
    if not rest:
        talk.screen.note(
            f"you talk to {talk.agent.model.name}; /model NAME switches, as in"
            " /model anthropic:claude-sonnet-4-5",
        )
        return
    name, _, dialect = rest.partition(" ")
    settings = settings_of(name, dialect=dialect.strip() or None)
    model = opened(name, settings, may_fetch=talk.may_fetch)
    before = talk.agent
    talk.agent, talk.base_url = before.with_model(model), None
    talk.chooses_tools = chooses_tools(name)
    if before.model.name == model.name:
        talk.retired.append(before.model)  # its server is ours, and takes a while to start
    else:
        talk.run(before.model.close())
    spoken = f" in {dialect.strip()}" if dialect.strip() else ""
    talk.screen.note(f"from here on with {model.name}{spoken}")


def chooses_tools(model: str) -> bool:
    """Whether a model can tell when to call a tool; the small one we bring along can't."""
    from dragoman.transport.local.catalogue import PACKAGED

    own = own_model(model)
    return own is None or own.kind != "local" or own.rest.lower() not in PACKAGED


def _tools(talk: Talk, _rest: str) -> None:
    if not talk.tools:
        talk.screen.note("there are none; --tools FILE.py brings them along")
        return
    rows = [
        (
            each.name,
            (each.definition.description or "").partition("\n")[0],
            "asks first" if each.requires_approval else "",
        )
        for each in talk.tools
    ]
    talk.screen.table(("tool", "what it does", ""), rows)
    if not talk.chooses_tools:
        talk.screen.note("this model is too small to choose for itself: /tool NAME has one called")


def _tool(talk: Talk, rest: str) -> None:
    name, _, said = rest.partition(" ")
    if name not in {each.name for each in talk.tools}:
        known = ", ".join(each.name for each in talk.tools) or "none"
        raise Ending(USAGE, f"which tool? There are: {known}")
    if (own := own_model(talk.agent.model.name)) is not None and own.kind == "echo":
        talk.say(f"/tool {rest}")  # this is how it is told
    else:
        talk.say(said.strip() or f"Call {name}.", tool_choice=name)


# --- the conversation


def _undo(talk: Talk, _rest: str) -> None:
    said = prompts(talk.run(talk.history.messages()))
    if not said:
        raise Ending(USAGE, "nothing has been said yet")
    talk.run(go_back_before(talk.history, said[-1].id))
    talk.screen.note(f"taken back: “{said[-1].preview(_PREVIEW)}”, and what was answered")


def _fork(talk: Talk, rest: str) -> None:
    said = prompts(talk.run(talk.history.messages()))
    if not said:
        raise Ending(USAGE, "nothing has been said yet")
    if not rest:
        first = max(len(said) - _PROMPTS, 0)
        rows = [(str(n), said[n - 1].preview(_PREVIEW)) for n in range(first + 1, len(said) + 1)]
        talk.screen.table(("", "you said"), rows)
        talk.screen.note("/fork NUMBER goes back to there, and on from there on another branch")
        return
    if not rest.isdecimal() or not 0 < int(rest) <= len(said):
        raise Ending(USAGE, f"/fork takes a number from 1 to {len(said)}; /fork alone lists them")
    chosen = said[int(rest) - 1]
    talk.run(go_back_before(talk.history, chosen.id))
    talk.lines.suggest(chosen.text)
    talk.screen.note(
        f"back before “{chosen.preview(_PREVIEW)}”, on branch {talk.history.branch};"
        " the other one is kept",
    )


def _retry(talk: Talk, _rest: str) -> None:
    messages = talk.run(talk.history.messages())
    said = prompts(messages)
    if not said:
        raise Ending(USAGE, "nothing has been said yet")
    place = next(i for i, message in enumerate(messages) if message.id == said[-1].id)
    if place + 1 < len(messages):
        talk.run(go_back_before(talk.history, messages[place + 1].id))
    talk.retry()


def _attach(talk: Talk, rest: str) -> None:
    from pathlib import Path

    from dragoman.cli.asking import attached

    if not rest:
        held = len(talk.attached)
        raise Ending(USAGE, f"/attach FILE; {held} wait{'s' if held == 1 else ''} to be sent")
    path = Path(rest.strip("'\"")).expanduser()
    talk.attached.extend(attached((str(path),)))
    talk.screen.note(f"{path.name} goes along with what you say next")


def _save(talk: Talk, rest: str) -> None:
    save(talk, rest)


def _usage(talk: Talk, _rest: str) -> None:
    talk.screen.note(*talk.spent.lines())


def _help(talk: Talk, _rest: str) -> None:
    talk.screen.table(
        ("command", "what it does"), [(each.usage, each.about) for each in COMMANDS.values()]
    )
    talk.screen.note(
        'A backslash at the end of a line goes on with the next; so does """ until """.',
        "ctrl-C stops an answer, and keeps what was said of it. ctrl-D leaves.",
    )


def _quit(_talk: Talk, _rest: str) -> None:
    raise Quit


COMMANDS = {
    "model": Command(_model, "/model [NAME [DIALECT]]", "switch to another model"),
    "tools": Command(_tools, "/tools", "what the model can call"),
    "tool": Command(_tool, "/tool NAME [TEXT]", "say something, and have that tool called"),
    "attach": Command(_attach, "/attach FILE", "send a file along with what you say next"),
    "retry": Command(_retry, "/retry", "have another answer to what you said last"),
    "undo": Command(_undo, "/undo", "take back what you said last, and its answer"),
    "fork": Command(_fork, "/fork [NUMBER]", "go back to something you said, on another branch"),
    "save": Command(_save, "/save [FILE]", "write the conversation: .json, or .md to read"),
    "usage": Command(_usage, "/usage", "tokens and cost so far"),
    "help": Command(_help, "/help", "this list"),
    "quit": Command(_quit, "/quit", "leave"),
}
