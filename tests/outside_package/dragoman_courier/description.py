"""Describes Courier: how to detect it, and what its vendor supports."""

from __future__ import annotations

from dragoman.model.parts import Origin
from dragoman.wire.description import Description, MessageForm
from dragoman.wire.flags import (
    FieldFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    StateFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.schemas import Profile
from dragoman.wire.target import Target

NAME = "courier"
OWN = Origin(dialect=NAME)
"""The origin of parts of a request."""

DESCRIPTION = Description(
    name=NAME,
    about="Courier: turns with a list of pieces, and lines of JSON for streams",
    messages_field="turns",
    system_field="brief",
    answer_field="turn",
    paths=("/send",),
    fields=frozenset({"turns", "brief", "turn", "ended"}),
    response_fields=frozenset({"turn", "ended"}),
    messages=MessageForm(
        content_field="pieces", own_fields=frozenset({"from"}), fields=frozenset({"from", "pieces"})
    ),
)

TARGET = Target(
    dialect=NAME,
    unsupported_part_fields=(
        "Text.citations", "Text.signature", "Text.cache", "Image.name", "Image.detail",
        "Image.signature", "Image.cache", "Thinking.cache", "ToolCall.signature",
        "ToolCall.cache", "ToolResult.signature", "ToolResult.cache", "ToolResult.tool_name",
        "Opaque.signature", "Opaque.cache",
    ),
    turns=TurnFlags(takes_developer=False, refuses_empty_text=True, refuses_empty_messages=True),
    tools=ToolFlags(choices=("auto", "none"), takes_parallel_choice=False),
    thinking=ThinkingFlags(form="never"),
    sampling=SamplingFlags(
        refused=("top_p", "top_k", "seed", "stop", "presence_penalty", "frequency_penalty",
                 "logprobs", "top_logprobs", "choices")
    ),
    media=MediaFlags(kinds=("image",), takes_image_urls=False, in_results=True),
    schemas=SchemaFlags(outputs=("text", "schema"), takes_strict_tools=False),
    state=StateFlags(fields=()),
    fields=FieldFlags(needs_model=True),
)  # fmt: skip
"""The vendor's own deployment. Fitting applies these flags; encoders only write."""

SCHEMAS = Profile(name="courier", refused_at_root=frozenset({"anyOf", "oneOf"}))
"""The vendor supports all of JSON Schema, except unions as a tool's parameters."""
