"""Cache hints on parts and tools: OpenAI's breakpoints, and Anthropic's form for routers (C4)."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import CacheHint, Part
from dragoman.model.tools import ToolDefinition
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.spelling import is_object, is_own, words_of

_SPELLINGS = {
    "cache_control": ("type", "ephemeral"),
    "prompt_cache_breakpoint": ("mode", "explicit"),
}


def decode_cache(wire: dict[str, Any]) -> tuple[CacheHint | None, str]:
    """The hint in an object and the field that holds it; None and empty where there is none."""
    for field, (key, value) in _SPELLINGS.items():
        hint = wire.get(field)
        if is_object(hint) and hint.get(key) == value:
            ttl = hint.get("ttl")
            if len(hint) == 1 or (len(hint) == 2 and isinstance(ttl, str)):  # noqa: PLR2004
                return CacheHint(ttl), field
    return None, ""


def encode_cache(
    body: dict[str, Any], item: Part | ToolDefinition, out: Outgoing, path: str
) -> None:
    """Write a hint as it was spelled; hints of other dialects are left out."""
    if item.cache is None:
        return
    words = words_of(item.extras)
    field = out.target.cache_field or next((field for field in _SPELLINGS if field in words), None)
    if field is None and isinstance(item, Part) and is_own(item.origin):
        field = "prompt_cache_breakpoint"
    if field is None:
        out.lose(f"{path}.cache", "prompt caching is automatic; the hint is left out")
        return
    key, value = _SPELLINGS[field]
    body[field] = {key: value} if item.cache.ttl is None else {key: value, "ttl": item.cache.ttl}
