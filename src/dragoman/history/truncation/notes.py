"""Notes: messages in the window that replace those left out.

Notes are user messages. Every target accepts these at the start of a window, also next to another
user message; and text about old tool results must not have the authority of the system. The
metadata marks them as ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text
from dragoman.model.roles import Role

Kind = Literal["marker", "summary", "symbols"]
_OWN = "dragoman"


def marker(count: int, reason: str = "") -> Message:
    """A note with the number of messages left out; `reason`: why there is no better note."""
    return _note("marker", f"({_earlier(count)} left out here.)", reason)


def summary(text: str, count: int) -> Message:
    """A note with a summary of the messages left out."""
    return _note("summary", f"({_earlier(count)} left out here. In short:)\n{text}")


def symbols(lines: Iterable[str], count: int) -> Message:
    """A note with one line per message left out; there may be fewer lines than messages."""
    heading = f"({_earlier(count)} left out here. The latest of them, a line each:)"
    return _note("symbols", "\n".join((heading, *lines)))


def kind_of(message: Message) -> str | None:
    """The kind of a note, or `None` if it is not one of ours."""
    own = message.metadata.get(_OWN, EMPTY)
    kind = own.get("note") if isinstance(own, dict) else None
    return kind if isinstance(kind, str) else None


def body_of(note: Message) -> str:
    """A note's text below its heading; for other messages, the whole text."""
    text = note.text
    return text if kind_of(note) is None else text.partition("\n")[2]


def others(notes: Iterable[Message], *kinds: Kind) -> tuple[Message, ...]:
    """The notes of other kinds."""
    return tuple(note for note in notes if kind_of(note) not in kinds)


def _earlier(count: int) -> str:
    return "1 earlier message was" if count == 1 else f"{count} earlier messages were"


def _note(kind: Kind, text: str, reason: str = "") -> Message:
    about = {"note": kind, "reason": reason} if reason else {"note": kind}
    made = make_message(Role.USER, (Text(text),), metadata={_OWN: about})
    made.settle()  # stored with the cut, so its id must not change
    return made
