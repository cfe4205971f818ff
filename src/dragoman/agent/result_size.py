"""Limits the size of tool results. Larger ones are not cut: the model is told their size."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from dragoman.model.functions.tool import Tool
from dragoman.model.jsontext import dumps
from dragoman.model.media import Media
from dragoman.model.tools import ToolCall, ToolResult, make_result

_BASE64_CHARS, _BASE64_BYTES = 4, 3


def bounded(
    call: ToolCall,
    result: ToolResult,
    tool: Tool[..., Any] | None,
    max_chars: int | None,
    max_media_bytes: int | None,
) -> ToolResult:
    """The result, or an error result with its size if it is too large."""
    if tool is not None and tool.max_chars is not None:
        max_chars = tool.max_chars
    chars = _chars(result, max_chars)
    if chars is not None:
        return _refused(call, f"{chars:,} characters", f"{max_chars:,}")
    count = _media_bytes(result)
    if count and max_media_bytes is not None and count > max_media_bytes:
        return _refused(call, f"{count:,} bytes of media", f"{max_media_bytes:,}")
    return result


def _refused(call: ToolCall, size: str, limit: str) -> ToolResult:
    text = (
        f"`{call.name}` ran to its end, but its result is too large to be shown: it has {size}, and"
        f" {limit} are the limit. Nothing of it is shown. Ask for a part of it, or for less."
    )
    return make_result(call.id, text, tool_name=call.name, is_error=True, kind=call.kind)


def _chars(result: ToolResult, limit: int | None) -> int | None:
    """The number of characters, if that exceeds the limit."""
    if limit is None:
        return None
    count = len(result.content) if isinstance(result.content, str) else 0
    if count == 0 and result.content:
        count = sum(len(getattr(part, "text", "")) for part in result.content)
    if result.data is not UNSET:
        written = dumps(result.data)
        # There are no more characters than bytes: most results need no decoding to know.
        count += len(written) if len(written) <= limit else len(written.decode("utf-8"))
    return count if count > limit else None


def _media_bytes(result: ToolResult) -> int:
    if isinstance(result.content, str):
        return 0
    encoded = (part.data or "" for part in result.content if isinstance(part, Media))
    return sum(len(data) * _BASE64_BYTES // _BASE64_CHARS for data in encoded)
