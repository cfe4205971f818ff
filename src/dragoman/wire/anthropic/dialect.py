"""What is particular to Messages, and the state of a body that is read or written."""

from __future__ import annotations

from typing import Any

from dragoman.model.parts import Origin, Part
from dragoman.model.roles import Role
from dragoman.wire.call_ids import CallIds
from dragoman.wire.description import Description, MessageForm, SdkModule, Wire
from dragoman.wire.flags import (
    CacheFlags,
    FieldFlags,
    IdFlags,
    MediaFlags,
    SamplingFlags,
    StateFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.fronts import Front
from dragoman.wire.losses import Action, Loss, Repair
from dragoman.wire.schemas import (
    ANTHROPIC_STRICT,
    ANTHROPICS,
    Profiles,
    Projection,
    SentSchemas,
    Weight,
)
from dragoman.wire.target import Target

NAME = "anthropic"
HERE = Origin(dialect=NAME)
"""On parts of requests whose opaque state may go back to this dialect only (I1)."""

Block = dict[str, Any]
"""A content block, or any other object of the wire."""


def is_ours(origin: Origin | None) -> bool:
    """Whether something is known to come from this dialect."""
    return origin is not None and origin.dialect == NAME


def _names_claude(wire: Wire) -> bool:
    """Whether a body that says nothing else names its model as Anthropic does."""
    model = wire.get("model")
    is_claude = isinstance(model, str) and model.startswith("claude")
    return is_claude and "max_tokens" in wire and isinstance(wire.get("messages"), list)


def _is_answer(message: Wire) -> bool:
    return message.get("type") == "message" and "stop_reason" in message


def _is_response(_kind: str, wire: Wire) -> bool:
    return wire.get("type") == "message" and "role" in wire


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
    messages=MessageForm(
        fields=frozenset({"role", "content"}),
        part_types=frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking",
                              "document", "server_tool_use", "search_result", "image",
                              "mcp_tool_use", "compaction", "container_upload", "tool_addition",
                              "tool_removal"}),
        part_type_ending="_tool_result",  # as the results of all its own tools do
        shared_part_types={"thinking": "thinking", "tool_result": "tool_use_id",
                           "image": "source"},
        is_answer=_is_answer,
        role_names={Role.DEVELOPER: "system", Role.TOOL: "user"},
        model_parts=frozenset({"tool_use", "server_tool_use", "thinking", "redacted_thinking"}),
    ),
    sdk_modules=(SdkModule("anthropic.types", "exclude_unset", _is_response),),
)  # fmt: skip


# --- anthropic's own deployment

TARGET = Target(
    dialect=NAME,
    provider="anthropic",
    unsupported_part_fields=(
        "Image.signature",
        "Image.name",
        "Image.mime",
        "File.signature",
        "File.detail",
        "File.mime",
        "Thinking.cache",
        "ToolResult.signature",
        "ToolResult.tool_name",
        "ServerToolCall.signature",
        "ServerToolResult.signature",
        "Opaque.signature",
        "Opaque.cache",
    ),
    ids=IdFlags(
        pattern=r"[a-zA-Z0-9_-]+",  # W44
        must_be_unique=True,  # W43
    ),
    tools=ToolFlags(name_pattern=r"[a-zA-Z0-9_-]{1,128}", max_name_length=128),
    turns=TurnFlags(
        groups_results=True,  # W40, W41
        merges_neighbours=True,  # W47; recordings show calls in two messages answered together
        refuses_empty_text=True,  # W46
        refuses_blank_text=True,
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
    ),
    media=MediaFlags(
        in_results=True,  # W64
    ),
    state=StateFlags(fields=("thread",)),
    cache=CacheFlags(
        max_hints=4,  # W60
    ),
    fields=FieldFlags(needs_model=True),
)


# --- this dialect in front of another provider: signed thinking, redacted thinking as a carrier

FRONT = Front(HERE)


# --- how much of strict schemas one request may hold: there are limits for all of them together

MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = ANTHROPIC_STRICT.most_optional or 0
MAX_UNIONS = ANTHROPIC_STRICT.most_unions or 0


class StrictSchemaLimits:
    """What is left of it."""

    __slots__ = ("_optional", "_tools", "_unions")

    def __init__(self) -> None:
        self._tools = MAX_STRICT_TOOLS
        self._optional = MAX_OPTIONAL
        self._unions = MAX_UNIONS

    def spend(self, weight: Weight, *, tools: int = 0) -> None:
        """Count a schema that is going to be sent."""
        self._tools -= tools
        self._optional -= weight.optional
        self._unions -= weight.unions

    def refusal(self, made: Projection) -> str | None:
        """Why one more strict tool is too much; where it is not, it is counted."""
        weight = made.weight
        if self._tools < 1:
            return f"there are more strict tools than the {MAX_STRICT_TOOLS} that are taken"
        if weight.optional > self._optional:
            return f"all strict schemas may have {MAX_OPTIONAL} optional properties together"
        if weight.unions > self._unions:
            return f"all strict schemas may have {MAX_UNIONS} unions together"
        self.spend(weight, tools=1)
        return None


# --- a body being read, a body being written


class Decoding:
    """A body being read: the origin of its parts, and the ids of its tool calls."""

    __slots__ = ("calls", "has_envelopes", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """For parts with opaque state; None where the message says it for all its parts."""
        self.has_envelopes = False
        """Whether the message being read holds another provider's state; see `unsealing`."""
        self.calls = calls


class Encoding:
    """A body being written: what it could not say, and where the writer is."""

    __slots__ = (
        "first_without_thinking",
        "item",
        "losses",
        "message",
        "origin",
        "part",
        "place",
        "profiles",
        "repairs",
        "schemas",
        "strict_limits",
        "wire_ids",
    )  # fmt: skip

    def __init__(self, place: str, profiles: Profiles = ANTHROPICS) -> None:
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.profiles = profiles
        """What is taken of the schemas of tools."""
        self.schemas = SentSchemas(self.losses, self.repairs)
        self.strict_limits = StrictSchemaLimits()
        self.place = place
        """The path of a part, to be filled in with the numbers of its message and its own."""
        self.message = 0
        self.part = 0
        self.item: int | None = None
        self.origin: Origin | None = None
        """The message's origin, which its parts share unless they have their own."""
        self.first_without_thinking: int | None = None
        """The message from which on there must be no thinking (W53)."""
        self.wire_ids: dict[str, str] = {}
        """What calls are called on the wire, where that is not their id."""

    def lose(self, reason: str, field: str = "") -> None:
        """Note that the part being written, or a field of it, is left out or changed."""
        path = self.place.format(self.message, self.part)
        inner = "" if self.item is None else f".content[{self.item}]"
        self.losses.append(Loss(f"{path}{inner}{field}", reason))

    def repair(self, rule: str, action: Action, reason: str) -> None:
        """Note that the part being written is put right."""
        path = self.place.format(self.message, self.part)
        self.repairs.append(Repair(path, rule, action, reason))

    def lose_at(self, path: str, reason: str) -> None:
        """Note that what stands at this path is left out or changed."""
        self.losses.append(Loss(path, reason))

    def origin_of(self, part: Part) -> Origin | None:
        """Where a part comes from: its own origin, or its message's."""
        return part.origin if part.origin is not None else self.origin

    def is_foreign(self, part: Part) -> bool:
        """Whether a part is known to come from another dialect."""
        origin = self.origin_of(part)
        return origin is not None and origin.dialect != NAME
