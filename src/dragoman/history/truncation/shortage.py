"""Explains why a history can't be made to fit, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.history.truncation.counting import around, scaled
from dragoman.history.truncation.cut import Cut
from dragoman.history.truncation.groups import is_instruction
from dragoman.history.truncation.strategy import Room
from dragoman.history.truncation.window import Window, weight_of
from dragoman.model.collection import Messages


async def shortage(messages: Messages, smallest: Cut, room: Room) -> str:
    """The size of the shortest window, its components, and advice; without content."""
    window = await Window.opened(messages, smallest, room)
    shares = ", ".join(f"{tokens} of {what}" for what, tokens in _shares(window, room) if tokens)
    return (
        f"the shortest valid window takes {window.tokens} tokens, but there is room for only"
        f" {room.limit}. Estimated: {shares or 'nothing'}. {_advice(window)}"
    )


def _shares(window: Window, room: Room) -> Iterator[tuple[str, int]]:
    """The estimated tokens of each component of a window."""
    told = [message for message in window.messages if is_instruction(message)]
    weights = {"tools and system prompt": around(room), "instructions": weight_of(told)}
    for group in window.groups:
        kind = "pinned turns" if group.stays else "the last turn"
        said = window.messages[group.start : group.stop]
        spoken = weight_of(message for message in said if not is_instruction(message))
        weights[kind] = weights.get(kind, 0) + spoken
    for kind, weight in weights.items():
        yield kind, scaled(weight, window.ratio)


def _advice(window: Window) -> str:
    advice = "Use a larger context window, reserve less for the response, or shorten what must stay"
    if any(group.stays for group in window.groups):
        advice += "; unpin messages"
    if window.rounds():
        advice += "; FitWindow(rounds=True) leaves out the oldest tool calls of the last turn"
    return f"{advice}."
