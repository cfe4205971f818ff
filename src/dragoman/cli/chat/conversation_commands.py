"""Chat commands about the conversation: undo, retry, fork, sessions, attach, save."""

from __future__ import annotations

from dragoman.cli.attachments import attached, is_address, shown_name
from dragoman.cli.chat.attaching import attached_files, named_files
from dragoman.cli.chat.completion import Candidate, fitting
from dragoman.cli.chat.continuing import take_over
from dragoman.cli.chat.copying import copied
from dragoman.cli.chat.saving import save as write
from dragoman.cli.chat.sessions import (
    go_back_before,
    last_exchange,
    latest_sessions,
    name_of,
    opened_beside,
    prompts,
)
from dragoman.cli.chat.talk import Talk
from dragoman.cli.exit_codes import USAGE, Ending
from dragoman.cli.history.stores import counted, moment
from dragoman.history.session_summaries import Listed, looked_at
from dragoman.model.roles import Role

_PROMPTS = 10
_SESSIONS = 20
_PREVIEW = 70
_NOTHING_YET = "there are no messages yet"


def undo(talk: Talk, _rest: str) -> None:
    """`/undo`: remove the last message and its answer."""
    said = prompts(talk.run(talk.history.messages()))
    if not said:
        raise Ending(USAGE, _NOTHING_YET)
    _go_back(talk, said[-1].id)
    talk.screen.note(f"removed “{said[-1].preview(_PREVIEW)}” and its answer")


def _go_back(talk: Talk, id: str) -> None:
    talk.run(go_back_before(talk.history, id))
    talk.kept_state = None  # the message that stored it may be gone


def fork(talk: Talk, rest: str) -> None:
    """`/fork`: list the user's messages, or go back to before one."""
    said = prompts(talk.run(talk.history.messages()))
    if not said:
        raise Ending(USAGE, _NOTHING_YET)
    if not rest:
        first = max(len(said) - _PROMPTS, 0)
        rows = [(str(n), said[n - 1].preview(_PREVIEW)) for n in range(first + 1, len(said) + 1)]
        talk.screen.table(("", "your message"), rows)
        talk.screen.note("/fork NUMBER goes back to before that message, in a new branch")
        return
    number = _number(rest, len(said))
    if number is None:
        raise Ending(USAGE, f"/fork takes a number from 1 to {len(said)}; /fork alone lists them")
    chosen = said[number - 1]
    _go_back(talk, chosen.id)
    talk.lines.suggest(chosen.text)
    talk.screen.note(
        f"back to before “{chosen.preview(_PREVIEW)}”, in branch {talk.history.branch};"
        " the other branch is kept",
    )


def _number(text: str, most: int) -> int | None:
    """The text as a number from 1 to `most`; None if it isn't one."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    return int(text) if is_number and 0 < int(text) <= most else None


def retry(talk: Talk, _rest: str) -> None:
    """`/retry`: another answer to the last message."""
    messages = talk.run(talk.history.messages())
    said = prompts(messages)
    if not said:
        raise Ending(USAGE, _NOTHING_YET)
    place = next(i for i, message in enumerate(messages) if message.id == said[-1].id)
    if place + 1 < len(messages):
        talk.run(go_back_before(talk.history, messages[place + 1].id))
    talk.retry()


# --- sessions


def new(talk: Talk, rest: str) -> None:
    """`/new`: start a new chat; the current one stays stored."""
    if rest and rest in _names(talk):
        raise Ending(USAGE, f"there is already a chat {rest}; /sessions {rest} continues it")
    talk.run(talk.move_to(talk.run(opened_beside(talk.history, rest or None))))
    talk.screen.note(f"new chat, {_kept(talk)}")


def sessions(talk: Talk, rest: str) -> None:
    """`/sessions`: list the chats, or continue one."""
    found = talk.run(latest_sessions(talk.history))
    if not rest:
        _list(talk, talk.run(looked_at(talk.history.storage, found[:_SESSIONS])), len(found))
        return
    names = [each.identity.chat or "" for each in found]
    number = None if rest in names else _number(rest, len(found))
    name = names[number - 1] if number is not None else rest
    if name not in names:
        raise Ending(USAGE, f"there is no chat {rest}; /sessions lists them, /new starts one")
    talk.run(talk.move_to(talk.run(opened_beside(talk.history, name))))
    talk.screen.note(f"continuing a chat, {_kept(talk)}")
    take_over(talk)
    show_last(talk)
    talk.take_up()


def show_last(talk: Talk) -> None:
    """Show the last exchange of a continued chat."""
    asked, answered = last_exchange(talk.run(talk.history.messages()))
    if asked is not None:
        talk.screen.note("", f"> {asked.text}")
    if answered is not None:
        talk.screen.told(answered.text)


def _list(talk: Talk, found: list[Listed], in_all: int) -> None:
    if not found:
        talk.screen.note("there are no stored chats yet; this one is stored with its first message")
        return
    current = talk.history.identity
    rows = [
        (
            str(number),
            f"{each.session.identity.chat}{' *' if each.session.identity == current else ''}",
            moment(each.session.updated_at),
            str(each.messages),
            (each.first_line or each.unreadable or "")[:_PREVIEW],
        )
        for number, each in enumerate(found, start=1)
    ]
    talk.screen.table(("", "chat", "last written (UTC)", "messages", "first line"), rows)
    more = f" (the latest {len(found)} of {counted(in_all, 'chat')})" if in_all > len(found) else ""
    talk.screen.note(f"/sessions NUMBER or NAME continues a chat{more}")


def _kept(talk: Talk) -> str:
    name = name_of(talk.history.identity)
    return f"stored as {name}" if talk.is_kept else f"{name} (not stored)"


def _names(talk: Talk) -> list[str]:
    found = talk.run(latest_sessions(talk.history))
    return [each.identity.chat or "" for each in found]


async def session_names(talk: Talk, typed: str) -> list[Candidate]:
    """The names of the chats, most recent first."""
    found = await latest_sessions(talk.history)
    return fitting(typed, [(each.identity.chat or "", moment(each.updated_at)) for each in found])


# --- files and output


def attach(talk: Talk, rest: str) -> None:
    """`/attach`: attach files to the next message."""
    if not rest:
        held = len(talk.attached)
        raise Ending(USAGE, f"usage: /attach FILE or URL ({held} attached so far)")
    if is_address(rest):
        talk.attached.extend(attached((rest,)))
        talk.screen.note(f"{shown_name(rest)} will be sent with your next message")
        return
    paths = named_files(rest)
    talk.attached.extend(attached_files(paths))
    names = ", ".join(path.name for path in paths)
    talk.screen.note(f"{names} will be sent with your next message")


def save(talk: Talk, rest: str) -> None:
    """`/save`: write the conversation to a file."""
    write(talk, rest)


def copy(talk: Talk, rest: str) -> None:
    """`/copy`: copy the last answer to the clipboard."""
    if rest not in {"", "code"}:
        raise Ending(USAGE, "/copy copies the last answer, /copy code its last code block")
    _, answered = last_exchange(talk.run(talk.history.messages()))
    if answered is None:
        raise Ending(USAGE, "there is no answer yet")
    talk.screen.note(copied(answered.text, talk.screen, only_code=bool(rest)))


def thinking(talk: Talk, _rest: str) -> None:
    """`/thinking`: show the model's thinking before its last answer."""
    for message in reversed([*talk.run(talk.history.messages())]):
        if message.role is Role.ASSISTANT and message.thinking:
            talk.screen.note(message.thinking)
            return
        if message.role is Role.USER:
            break
    raise Ending(USAGE, "the last answer came without thinking; turn it on with /set thinking on")


def usage(talk: Talk, _rest: str) -> None:
    """`/usage`: show the tokens and cost of the chat so far."""
    talk.screen.note(*talk.spent.lines())
