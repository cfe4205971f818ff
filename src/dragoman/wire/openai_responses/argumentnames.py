"""Names of properties in a call's arguments: 256 characters at the most (W39).

A model that stutters may have written a longer one. The call stays in the history, so the name is
cut there, with a hash of the whole in its place.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps, loads

LONGEST = 256
_HASH = 8


def has_long_names(arguments: str) -> bool:
    """Whether a property anywhere in the arguments has a name that is too long."""
    if len(arguments) <= LONGEST:  # most are
        return False
    pending = [_parsed(arguments)]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if any(len(name) > LONGEST for name in node):
                return True
            pending += node.values()
        elif isinstance(node, list):
            pending += node
    return False


def with_short_names(arguments: str) -> str:
    """The arguments, with long names cut."""
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
    if len(name) <= LONGEST:
        return name
    mark = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
    return f"{name[: LONGEST - _HASH - 1]}_{mark}"
