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
    facts = (*identity, *place) if identity.id else (*identity, *place, *said)
    written = _written(facts)
    made = _hashed(written)
    attempt = 0
    while is_taken(made):
        attempt += 1
        made = _hashed(written + b"#%d" % attempt)
    return made


def _written(facts: tuple[Any, ...]) -> bytes:
    """Facts as text, the same whatever the order of keys in arguments."""
    try:
        return _dump_sorted(facts)
    except (TypeError, ValueError, OverflowError, RecursionError):
        # Half a character, or a number without end: arguments are left out, the place has to do.
        plain = [fact for fact in facts if isinstance(fact, str | int | float | None)]
        return repr(plain).encode("utf-8", "backslashreplace")


def _hashed(written: bytes) -> str:
    from hashlib import blake2b  # here: most programs that make messages never need it

    return f"call_{blake2b(written, digest_size=_DIGEST_SIZE).hexdigest()}"
