"""The `anthropic` dialect: its description and default target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.parts import Origin
from dragoman.model.roles import Role
from dragoman.wire.anthropic.tools_provider import FORMS
from dragoman.wire.anthropic.tools_provider_calls import CALLS
from dragoman.wire.description import Description, MessageForm, Readable, SdkModule, Wire
from dragoman.wire.flags import (
    WORDS,
    CacheFlags,
    FieldFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    SchemaFlags,
    StateFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.fronts import StateFields
from dragoman.wire.target import Target

NAME = "anthropic"
ORIGIN = Origin(dialect=NAME)
"""The origin of request parts whose opaque state may only be sent back to this dialect (I1)."""

Block = dict[str, Any]
"""A content block, or any other JSON object."""


def is_own(origin: Origin | None) -> bool:
    """Whether an origin is this dialect."""
    return origin is not None and origin.dialect == NAME


def _names_claude(wire: Wire) -> bool:
    """Whether a body without other evidence has a Claude model name."""
    model = wire.get("model")
    is_claude = isinstance(model, str) and model.startswith("claude")
    return is_claude and "max_tokens" in wire and isinstance(wire.get("messages"), list)


def _is_response_message(message: Wire) -> bool:
    return message.get("type") == "message" and "stop_reason" in message


def _is_response(_kind: str, wire: Wire) -> bool:
    return wire.get("type") == "message" and "role" in wire


def _readable(block: Wire) -> Readable | None:
    """The text of a search result, a document of blocks, or a compaction summary."""
    kind, source, content = block.get("type"), block.get("source"), block.get("content")
    if kind == "compaction":
        is_whole = block.keys() <= {"type", "content"}
        return Readable(content, is_whole) if isinstance(content, str) else None
    if kind == "document" and isinstance(source, Mapping) and source.get("type") == "content":
        content, heads = source.get("content"), (block.get("title"), block.get("context"))
        is_whole = block.keys() <= {"type", "source", "title", "context"}
    elif kind == "search_result":
        heads, is_whole = (block.get("title"), source), block.keys() <= _SEARCH_RESULT
    else:
        return None
    pieces = [{"text": content}] if isinstance(content, str) else content
    if not isinstance(pieces, (list, tuple)):
        return None
    texts = [piece.get("text") for piece in pieces if isinstance(piece, Mapping)]
    if not any(isinstance(text, str) and text for text in texts) or len(texts) != len(pieces):
        return None
    is_whole = is_whole and all(piece.keys() <= {"type", "text"} for piece in pieces)
    said = [text for text in (*heads, *texts) if isinstance(text, str) and text]
    return Readable("\n".join(said), is_whole)


_SEARCH_RESULT = {"type", "source", "title", "content"}


DESCRIPTION = Description(
    name=NAME,
    about="Anthropic's Messages API",
    messages_field="messages",
    system_field="system",
    answer_field="content",
    order=40,
    paths=("/messages", "awPredict"),
    headers=frozenset({"anthropic-version"}),
    fields=frozenset({"system", "anthropic_version", "stop_sequences", "stop_reason",
                      "stop_sequence", "mcp_servers", "container", "context_management"}),
    tool_fields=frozenset({"input_schema"}),
    is_likely=_names_claude,
    response_fields=frozenset({"stop_reason"}),
    possible_response_fields=frozenset({"usage"}),
    readable=_readable,
    writes_settings=True,
    provider_tools=FORMS,
    tool_offers="dragoman.wire.anthropic.tools",
    provider_calls=CALLS,
    messages=MessageForm(
        fields=frozenset({"role", "content"}),
        part_types=frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking",
                              "document", "server_tool_use", "search_result", "image",
                              "mcp_tool_use", "compaction", "container_upload", "tool_addition",
                              "tool_removal"}),
        part_type_ending="_tool_result",  # the ending of all built-in tools' result types
        shared_part_types={"thinking": "thinking", "tool_result": "tool_use_id",
                           "image": "source"},
        is_answer=_is_response_message,
        role_names={Role.DEVELOPER: "system", Role.TOOL: "user"},
        model_parts=frozenset({"tool_use", "server_tool_use", "thinking", "redacted_thinking"}),
    ),
    sdk_modules=(SdkModule("anthropic.types", "exclude_unset", _is_response),),
)  # fmt: skip


# --- the default target: Anthropic's own API

RANGES = {"temperature": (0, 1)}
"""The ranges of sampling settings, by their names in the model."""
TARGET = Target(
    dialect=NAME,
    provider="anthropic",
    ids=IdFlags(
        pattern=WORDS,  # W44
        must_be_unique=True,  # W43
    ),
    tools=ToolFlags(name_pattern=r"[a-zA-Z0-9_-]{1,128}", max_name_length=128),
    schemas=SchemaFlags(outputs=("text", "schema")),
    turns=TurnFlags(
        groups_results=True,  # W40, W41
        merges_neighbours=True,  # W47; recordings show calls of two messages answered together
        refuses_empty_text=True,  # W46
        refuses_blank_text=True,
        refuses_empty_answers=False,  # W46 says which
        prefill="trimmed",  # W48
        needs_message=True,  # W47
        refuses_empty_messages=True,  # W47
    ),
    thinking=ThinkingFlags(
        verifies_signatures=True,  # W54
        begins_turns=True,  # W51
        allows_forced_tools=False,  # W58
        is_refused_in_prefill=True,  # W53
    ),
    sampling=SamplingFlags(
        needs_token_limit=True,  # W50
        default_output_tokens=32_000,  # every model that Anthropic still serves accepts it
    ),
    media=MediaFlags(
        in_results=True,  # W64
        details=None,  # it has none, which is reported where the image is written
    ),
    state=StateFlags(fields=("thread",)),
    cache=CacheFlags(
        max_hints=4,  # W60
    ),
    fields=FieldFlags(needs_model=True),
)


# --- state of other providers in this dialect: signed thinking, with redacted thinking as carrier

STATE_FIELDS = StateFields(ORIGIN, keeps_texts=True)
LAST_TEXT_FIELDS = STATE_FIELDS._replace(ends_with_text=True)
"""For Claude Code, which takes the last block for the answer."""
