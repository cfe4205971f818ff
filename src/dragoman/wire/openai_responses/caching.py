"""Breakpoints of the prompt cache: a wish to keep the prompt up to a part."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import CacheHint, Part

_KEY = "prompt_cache_breakpoint"
_TTLS = frozenset({"30m", "12h"})


def decode_cache(optional: dict[str, Any]) -> CacheHint | None:
    """The wish, taken out of the optional fields; one that we could not write stays there."""
    wire = optional.get(_KEY)
    if not isinstance(wire, dict) or wire.get("mode") != "explicit":
        return None
    ttl = wire.get("ttl")
    if wire.keys() - {"mode", "ttl"} or ("ttl" in wire and not (type(ttl) is str and ttl in _TTLS)):
        return None
    del optional[_KEY]
    return CacheHint(ttl)


def has_breakpoint(body: dict[str, Any]) -> bool:
    """Whether a part was written with its wish."""
    return _KEY in body


def keeps_time(hint: CacheHint) -> bool:
    """Whether the wire offers the time that is wished for, if one is."""
    return hint.ttl is None or hint.ttl in _TTLS


def encode_cache(part: Part, body: dict[str, Any]) -> dict[str, Any]:
    """The body of a part with its wish; a time that the wire does not offer is left to it."""
    if part.cache is not None:
        ttl = part.cache.ttl
        body[_KEY] = {"mode": "explicit", "ttl": ttl} if ttl in _TTLS else {"mode": "explicit"}
    return body
