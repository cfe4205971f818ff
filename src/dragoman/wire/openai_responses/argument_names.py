"""Property names in a call's arguments: at most 256 characters (W39).

A model that repeats itself may have written a longer one. The call stays in the history, so the
name is truncated, with a hash of the whole name at its end.
"""

from __future__ import annotations

from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps, loads
from dragoman.wire.digests import sha256

MAX_NAME_LENGTH = 256
_HASH = 8


def has_long_names(arguments: str) -> bool:
    """Whether any property name in the arguments is too long."""
    if len(arguments) <= MAX_NAME_LENGTH:  # the most common case
        return False
    pending = [_parsed(arguments)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(len(name) > MAX_NAME_LENGTH for name in node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def with_short_names(arguments: str) -> str:
    """The arguments with long names truncated."""
    return dumps(_shortened(_parsed(arguments))).decode("utf-8")


def _parsed(arguments: str) -> Any:
    try:
        return loads(arguments)
    except InvalidInputError:
        return None


def _shortened(node: Any) -> Any:
    if isinstance(node, dict):
        return {_short(name): _shortened(value) for name, value in node.items()}
    return [_shortened(item) for item in node] if isinstance(node, list) else node


def _short(name: str) -> str:
    if len(name) <= MAX_NAME_LENGTH:
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: MAX_NAME_LENGTH - _HASH - 1]}_{mark}"
