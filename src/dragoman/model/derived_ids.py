"""Ids for tool calls that came without one, derived from where they stand.

Calls and results are compared with their ids, so two decodes of one body have to give the same ids:
they are derived, not drawn. A call of a request is known by its place in the conversation, its name
and its arguments; the ids of the common beginning stay when a conversation grows. A call of a
response is known by the response's identity and its place in it, so that two answers never share
an id, and a streamed answer has the ids of its plain form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

_DIGEST_SIZE = 12  # bytes: no two derived ids are alike by chance
_dump_sorted = msgspec.json.Encoder(order="sorted").encode


class Identity(NamedTuple):
    """What tells the calls of one body from those of another."""

    kind: str
    id: str | None = None
    created_at: float | None = None
    model: str | None = None


REQUEST = Identity("request")
"""That of every request: the calls in it are known by their places."""
UNKNOWN_RESPONSE = Identity("response")
"""That of a response of which nothing is known yet."""


def response_identity(id: str | None, created_at: float | None, model: str | None) -> Identity:
    """The identity of a response; answers without ids are told apart by their time (Ollama)."""
    return Identity("response", id or None, created_at, model)


def derived_call_id(
    identity: Identity,
    place: tuple[int, int],
    said: tuple[str, Any],
    is_taken: Callable[[str], bool] = frozenset[str]().__contains__,
) -> str:
    """The id of the call at a place: message (or choice) and number of the call in it.

    `said` is the call's name and arguments, which count where the body has no id: some servers
    tell no time either, or always the same one.
    """
    from hashlib import blake2b  # here: most programs that make messages never need it

    told = () if identity.id else (said[0], _canonical(said[1]))
    written = repr((*identity, *place, *told)).encode("utf-8", "backslashreplace")
    attempt = 0
    while True:
        digest = blake2b(written, digest_size=_DIGEST_SIZE, salt=attempt.to_bytes(16, "big"))
        made = f"call_{digest.hexdigest()}"
        if not is_taken(made):
            return made
        attempt += 1


def _canonical(arguments: Any) -> Any:
    """Arguments as text, the same whatever the order of their keys."""
    if arguments is None or isinstance(arguments, str):
        return arguments
    try:
        return _dump_sorted(arguments)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None  # half a character, or a number without end: the place has to do
