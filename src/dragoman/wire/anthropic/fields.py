"""The fields that any block may have: its cache hint, and those that nobody knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.parts import CacheHint, Part
from dragoman.wire.anthropic.context import NAME, Block
from dragoman.wire.overlay import laid_over, rest

_PLAIN_HINT = CacheHint()


def decode_cache(block: Mapping[str, Any]) -> CacheHint | None:
    """The hint in a block's `cache_control`, if that is of the kind we know."""
    control = block.get("cache_control")
    if not isinstance(control, dict) or control.get("type") != "ephemeral":
        return None
    ttl = control.get("ttl")
    return CacheHint(ttl) if type(ttl) is str else _PLAIN_HINT


def encode_cache(hint: CacheHint) -> Block:
    """The `cache_control` of a hint."""
    if hint.ttl is None:
        return {"type": "ephemeral"}
    return {"type": "ephemeral", "ttl": hint.ttl}


def decode_rest(block: Block, known: Collection[str]) -> tuple[CacheHint | None, FrozenDict]:
    """The cache hint and, as extras, all fields that neither it nor `known` accounts for."""
    hint = decode_cache(block)
    if hint is None:
        return None, rest(block, known, NAME)
    left = {
        key: value
        for key, value in block["cache_control"].items()
        if key != "type" and not (key == "ttl" and hint.ttl is not None)
    }
    others = {key: value for key, value in block.items() if key != "cache_control"}
    if left:
        others["cache_control"] = left
    return hint, rest(others, known, NAME)


def encode_rest(block: Block, part: Part) -> Block:
    """The block with the part's cache hint and extras."""
    if part.cache is not None:
        block["cache_control"] = encode_cache(part.cache)
    return block if part.extras is EMPTY else laid_over(block, part.extras, NAME)
