"""Small histories in a compact notation."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.history.tokens import estimate
from dragoman.history.truncation.notes import marker
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall, ToolResult

_FILLER = "and so on and so forth " * 5


def talk(script: str) -> Messages:
    """A history from a script, such as `"s u1 a+x t+x a"`.

    The first letter is the role: system, developer, user, assistant, tool. `+x` is a call of `x`
    (assistant) or its result (tool), `!` pins the message. A message's id is its word and its
    index in the script: `u1` as the second word is `u1:1`. Each message is longer than a marker.
    """
    words = script.split()
    return Messages.of(_message(word, f"{word}:{place}") for place, word in enumerate(words))


def _message(word: str, name: str) -> Message:
    text = f"{name} {_FILLER}"
    who, *called = word.rstrip("!").split("+")
    about = {"pinned": True} if word.endswith("!") else {}
    calls = [ToolCall.create(each, "look", {}) for each in called]
    results = [ToolResult(each, text) for each in called]
    match who[0]:
        case "s":
            return Message.system(text, id=name, metadata=about)
        case "d":
            return Message.developer(text, id=name, metadata=about)
        case "a":
            return Message.assistant(text, tool_calls=calls, id=name, metadata=about)
        case "t":
            return Message.tool(*results, id=name, metadata=about)
        case _:
            own = [] if called and who == "r" else [text]
            return Message.user(*results, *own, id=name, metadata=about)


def words(messages: Iterable[Message]) -> str:
    """The script of a window, with `*` for a note."""
    return " ".join(m.id.split(":")[0] if ":" in m.id else "*" for m in messages)


def room_for(window: str, history: Messages) -> int:
    """The tokens of a window, given as a script of distinct words."""
    sizes = {message.id.split(":")[0]: estimate(message) for message in history}
    sizes["*"] = estimate(marker(len(history)))
    return sum(sizes[word] for word in window.split())
