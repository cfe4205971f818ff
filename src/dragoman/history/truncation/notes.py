"""What stands in the window for the messages that were left out.

Notes are the user's messages. Every target takes those at the beginning of a window without any
repair, next to another of the user's too; and what is told of old tool results must not speak
with the system's authority. The metadata says that they are ours.
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
    """Says how many messages were left out; `reason`: why nothing better could be done."""
    return _note("marker", f"({_earlier(count)} left out here.)", reason)


def summary(text: str, count: int) -> Message:
    """A summary of what was left out."""
    return _note("summary", f"({_earlier(count)} left out here. In short:)\n{text}")


def symbols(lines: Iterable[str], count: int) -> Message:
    """What was left out, a line each; there may be fewer lines than messages."""
    heading = f"({_earlier(count)} left out here. The latest of them, a line each:)"
    return _note("symbols", "\n".join((heading, *lines)))


def kind_of(message: Message) -> str | None:
    """What kind of note it is; None if it is not one of ours."""
    own = message.metadata.get(_OWN, EMPTY)
    kind = own.get("note") if isinstance(own, dict) else None
    return kind if isinstance(kind, str) else None


def body_of(note: Message) -> str:
    """What a note says below its heading, or all that somebody else's says."""
    text = note.text
    return text if kind_of(note) is None else text.partition("\n")[2]


def others(notes: Iterable[Message], *kinds: Kind) -> tuple[Message, ...]:
    """The notes that are of other kinds."""
    return tuple(note for note in notes if kind_of(note) not in kinds)


def _earlier(count: int) -> str:
    return "1 earlier message was" if count == 1 else f"{count} earlier messages were"


def _note(kind: Kind, text: str, reason: str = "") -> Message:
    about = {"note": kind, "reason": reason} if reason else {"note": kind}
    made = make_message(Role.USER, (Text(text),), metadata={_OWN: about})
    made.settle()  # it is stored with the cut, and has to stay the same message
    return made
