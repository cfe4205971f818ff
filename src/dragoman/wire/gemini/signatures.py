"""Calls that nobody signed, for models that insist (W83).

The first call of each step of the current turn is verified; its parallel siblings and earlier turns
are not. A call that another provider's model made, or a person, has no signature that would pass:
the API has a word that stands for one (W84).
"""

from __future__ import annotations

from typing import Any

from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolResult
from dragoman.wire.gemini.trace import SENTINEL, SIGNATURE, is_object

_CALLS = ("functionCall", "function_call")
_SIGNATURES = (SIGNATURE, "thought_signature")


def turn_under_way(messages: tuple[Message, ...]) -> int:
    """Where the current turn begins: behind the last message in which the user spoke.

    Words beside results may count as a new turn or not: here they don't, which asks for more.
    """
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role is Role.USER and not any(type(p) is ToolResult for p in message.parts):
            return index + 1
    return 0


class Steps:
    """The steps of a turn, as they are written: neighbouring contents of the model are one."""

    __slots__ = ("_begin", "_is_open")

    def __init__(self, messages: tuple[Message, ...]) -> None:
        self._begin = turn_under_way(messages)
        self._is_open = False

    def sign(self, content: dict[str, Any], index: int) -> bool:
        """See to it that the first call of a step is signed; `content` is that of a message.

        Returns whether it was not.
        """
        if content.get("role") != "model":
            self._is_open = False
            return False
        parts = content.get("parts")
        if self._is_open or index < self._begin or not isinstance(parts, list):
            return False
        for place, part in enumerate(parts):
            if is_object(part) and any(part.get(key) is not None for key in _CALLS):
                self._is_open = True
                if not any(part.get(key) for key in _SIGNATURES):
                    signed = {key: part[key] for key in part if key not in _SIGNATURES}
                    content["parts"] = [*parts]
                    content["parts"][place] = {**signed, SIGNATURE: SENTINEL}
                    return True
                return False
        return False
