"""Deterministic ids for tool calls that arrive without one.

Ids take part in the comparison of calls and results, so decoding a body twice must give the same
ids: they are hashes, not random. In a request, the hash covers the call's position, name and
arguments, so ids of a common prefix stay the same as a conversation grows. In a response, it covers
the response's identity and the call's position, so two responses never share an id, and a streamed
response has the same ids as its unstreamed form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

_DIGEST_SIZE = 12  # bytes; enough to rule out collisions
_dump_sorted = msgspec.json.Encoder(order="sorted").encode


class Identity(NamedTuple):
    """What distinguishes the calls of one body from those of another."""

    kind: str
    id: str | None = None
    created_at: float | None = None
    model: str | None = None


REQUEST = Identity("request")
"""The identity of every request: calls in it are identified by position."""
UNKNOWN_RESPONSE = Identity("response")
"""The identity of a response about which nothing is known yet."""


def response_identity(id: str | None, created_at: float | None, model: str | None) -> Identity:
    """The identity of a response; without an id, the creation time distinguishes it (Ollama)."""
    return Identity("response", id or None, created_at, model)


def derived_call_id(
    identity: Identity,
    place: tuple[int, int],
    said: tuple[str, Any],
    is_taken: Callable[[str], bool] = frozenset[str]().__contains__,
) -> str:
    """The id for the call at a place: index of the message (or choice) and of the call in it.

    `said` is the call's name and arguments. They are hashed only where the response has no id,
    because some servers send no timestamp either, or always the same one.
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
    """Serialises the facts, independently of the key order of arguments."""
    try:
        return _dump_sorted(facts)
    except (TypeError, ValueError, OverflowError, RecursionError):
        # A lone surrogate or a non-finite number: hash without the arguments.
        plain = [fact for fact in facts if isinstance(fact, str | int | float | None)]
        return repr(plain).encode("utf-8", "backslashreplace")


def _hashed(written: bytes) -> str:
    from hashlib import blake2b  # imported here: most programs never need it

    return f"call_{blake2b(written, digest_size=_DIGEST_SIZE).hexdigest()}"
