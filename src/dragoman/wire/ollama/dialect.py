"""What is particular to Ollama: its own server, and the state of a body read or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import UnsetType

from dragoman.model.parts import Origin, Part
from dragoman.model.tools import ToolCall
from dragoman.wire.call_ids import CallIds
from dragoman.wire.description import Description, MessageForm, SdkModule, Wire
from dragoman.wire.flags import (
    FieldFlags,
    IdFlags,
    MediaFlags,
    SchemaFlags,
    StateFlags,
    ThinkingFlags,
    ToolFlags,
    TurnFlags,
)
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.schemas import SentSchemas
from dragoman.wire.target import Target

NAME = "ollama"
OWN = Origin(dialect=NAME)
"""The origin of what stood in a request, whose server nobody knows."""
EFFORTS = ("low", "medium", "high", "max")
"""What `think` may be besides true and false (W106)."""


def is_own(origin: Origin | None) -> bool:
    """Whether something came from this dialect."""
    return origin is OWN or (origin is not None and origin.dialect == NAME)


def _is_own(message: Wire) -> bool:
    """Whether a message thinks in plain text, has bare images, or arguments that are no text."""
    if isinstance(message.get("thinking"), str):
        return True
    images, calls = message.get("images"), message.get("tool_calls")
    if isinstance(images, list) and any(isinstance(image, str) for image in images):
        return True
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping) and isinstance(function.get("arguments"), Mapping):
            return True
    return False


def _is_response(_kind: str, wire: Wire) -> bool:
    return isinstance(wire.get("message"), dict)


DESCRIPTION = Description(
    name="ollama",
    about="Ollama's own API: `/api/chat`. Its `/v1` speaks OpenAI Chat",
    messages_field="messages",
    answer_field="message",
    order=10,
    paths=("/api/chat",),
    # Its messages and tools are those of OpenAI Chat, but for little.
    certain_fields=frozenset({"options", "keep_alive", "format", "think", "done", "done_reason",
                              "eval_count"}),
    possible_response_fields=frozenset({"message", "done"}),
    messages=MessageForm(
        roles=frozenset({"system", "user", "assistant", "tool"}),
        fields=frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name",
                          "tool_call_id"}),
        own_fields=frozenset({"tool_name"}),
        is_own=_is_own,
    ),
    sdk_modules=(
        SdkModule(
            "ollama._types",
            "exclude_none",
            _is_response,
            classes=frozenset({"Message", "ChatResponse"}),
        ),
    ),
)  # fmt: skip


# --- ollama's own server

_ANY_LENGTH = 1_000_000

TARGET = Target(
    dialect=NAME,
    provider="ollama",
    unsupported_part_fields=(
        "Image.signature",
        "Image.cache",
        "Image.name",
        "Image.detail",
        "Audio.signature",
        "Audio.cache",
        "Audio.name",
        "Audio.detail",
        "Audio.transcript",
        "Text.signature",
        "Text.citations",
        "Opaque.signature",
        "Opaque.cache",
    ),
    ids=IdFlags(max_length=_ANY_LENGTH),
    tools=ToolFlags(
        name_pattern=r"[\s\S]*",  # neither ids nor names are looked at
        max_name_length=_ANY_LENGTH,
        takes_parallel_choice=False,
    ),
    turns=TurnFlags(
        orders_results=True,  # W103
    ),
    thinking=ThinkingFlags(
        form="switch",  # W106
        efforts=EFFORTS,
    ),
    media=MediaFlags(
        kinds=("image", "audio"),
        takes_image_urls=False,  # W105
        in_results=True,
    ),
    schemas=SchemaFlags(takes_strict_tools=False),
    state=StateFlags(fields=()),
    fields=FieldFlags(needs_model=True),
)


# --- the state of a body that is being read, and of one that is written


class Incoming:
    """Where the parts came from, and which call a result answers."""

    __slots__ = ("calls", "names", "origin")

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        self.origin = origin
        """Goes on parts that must not lose it; None where their message tells."""
        self.calls = calls
        self.names: dict[str, str] = {}
        """The names of the tools, by the ids of their calls."""

    def admit(
        self, name: str, wire_id: str | None, arguments: Any
    ) -> tuple[str, str | UnsetType | None]:
        """The id of a new call, and its `wire_id`."""
        found = self.calls.admit_named(name, wire_id, arguments)
        self.names[found[0]] = name
        return found


class Outgoing:
    """Gathers what could not be said, and what calls are called on the wire."""

    __slots__ = ("ids", "is_cut_off", "is_response", "losses", "names", "repairs",
                 "schemas", "takes_anything")  # fmt: skip

    def __init__(
        self, *, is_response: bool = False, is_cut_off: bool = False, takes_anything: bool = False
    ) -> None:
        self.is_response = is_response
        self.takes_anything = takes_anything
        """Whether nothing is known to be refused: what came here goes back as it came."""
        self.is_cut_off = is_cut_off
        """Whether the answer ended before the model was done."""
        self.losses: list[Loss] = []
        self.repairs: list[Repair] = []
        self.schemas = SentSchemas(self.losses, self.repairs)
        self.ids: dict[str, str | None] = {}
        self.names: dict[str, str] = {}

    def lose(self, path: str, reason: str) -> None:
        """Note what could not be said."""
        self.losses.append(Loss(path, reason))

    def lose_luggage(self, part: Part, path: str) -> None:
        """Note what a part carries besides its content: there is no place for it."""
        if part.cache is not None:
            self.lose(f"{path}.cache", "the server decides itself what it keeps of a prompt")
        if part.signature is not None:
            self.lose(f"{path}.signature", "another provider's seal has no place here")

    def call(self, call: ToolCall, origin: Origin | None) -> str | None:
        """Remember a call for its result; returns its id on the wire, if it has one there.

        An older server gives none: its own calls go back without (W103).
        """
        wire_id = call.wire_id
        is_ours = is_own(call.origin if call.origin is not None else origin)
        found = call.id if isinstance(wire_id, UnsetType) or not is_ours else wire_id
        self.ids[call.id] = found
        self.names[call.id] = call.name
        return found
