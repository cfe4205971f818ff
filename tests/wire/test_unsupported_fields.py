"""Fields of parts that a dialect doesn't have are losses, if they hold a value."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman import Image, Message, Text, ToolCall, ToolResult
from dragoman.model.parts import CacheHint, Part
from dragoman.wire.fitting.unsupported_fields import unsupported_field_losses
from dragoman.wire.target import Target

CALL = Message.assistant(tool_calls=[ToolCall("c", "f")])


def _lost(part: Part, *fields: str) -> list[str]:
    target = Target(dialect="a", unsupported_part_fields=fields)
    message = CALL.replace_unchecked(parts=(part,))
    return [each.path for each in unsupported_field_losses((), (message,), target, ())]


@pytest.mark.parametrize(
    ("part", "path"),
    [
        (ToolResult.success("c", "ok"), None),
        (ToolResult.error("c", "no"), "is_error"),
        (ToolResult("c", "ok"), None),
        (ToolResult("c", "ok", kind="custom"), "kind"),
        (Text("a"), None),
        (Text("a", cache=CacheHint()), "cache"),
        (Image.from_url("https://example.com/a.png"), None),
    ],
    ids=repr,
)
def test_a_default_is_no_value(part: Part, path: str | None) -> None:
    """No loss for what every part of its kind has, or for a flag that is off."""
    kind: Any = type(part)
    plain = {"type", "extras", "data", "content", "text", "url", "call_id", "origin", "item_id"}
    fields = [field.name for field in msgspec.structs.fields(kind) if field.name not in plain]
    where = [] if path is None else [f"messages[0].parts[0].{path}"]
    assert _lost(part, *(f"{kind.__name__}.{name}" for name in fields)) == where
