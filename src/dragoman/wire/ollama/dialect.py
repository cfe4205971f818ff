"""The `ollama` dialect: its description and default target, and the state of a codec run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Part
from dragoman.wire.call_ids import CallIds
from dragoman.wire.description import Description, MessageForm, SdkModule, Wire
from dragoman.wire.flags import (
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
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import number
from dragoman.wire.shared_settings import SharedSetting, SharedSettings
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

NAME = "ollama"
ORIGIN = Origin(dialect=NAME)
"""The origin of parts decoded from a request, whose server is unknown."""
EFFORTS = ("low", "medium", "high", "max")
"""Values of `think` other than true and false (W106)."""


def is_own(origin: Origin | None) -> bool:
    """Whether an origin is this dialect."""
    return origin is ORIGIN or (origin is not None and origin.dialect == NAME)


def _is_own(message: Wire) -> bool:
    """Whether a message has plain-text thinking, bare base64 images, or object arguments."""
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
    writes_settings=True,
    host_settings=SharedSettings(
        SharedSetting("options.min_p", "min_p", number),
        SharedSetting("options.repeat_penalty", "repetition_penalty", number),
        SharedSetting("options.typical_p", "typical_p", number),
    ),
    answer_field="message",
    order=10,
    paths=("/api/chat",),
    # Its messages and tools are nearly those of OpenAI Chat.
    certain_fields=frozenset({"options", "keep_alive", "format", "think", "done", "done_reason",
                              "eval_count"}),
    possible_response_fields=frozenset({"message", "done"}),
    timings=frozenset({"total_duration", "load_duration", "prompt_eval_duration", "eval_duration"}),
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


# --- the default target: Ollama's own server

_ANY_LENGTH = 1_000_000

RANGES = {"top_logprobs": (0, 20)}
"""The ranges of sampling settings, by their names in the model."""
TARGET = Target(
    dialect=NAME,
    provider="ollama",
    unsupported_part_fields=(
        "Image.signature", "Image.cache", "Image.name", "Image.detail", "Audio.signature",
        "Audio.cache", "Audio.name", "Audio.detail", "Audio.transcript", "Text.signature",
        "Text.citations", "Opaque.signature", "Opaque.cache",
    ),
    ids=IdFlags(max_length=_ANY_LENGTH),
    tools=ToolFlags(
        name_pattern=r"[\s\S]*",  # neither ids nor names are validated
        max_name_length=_ANY_LENGTH,
        takes_parallel_choice=False,
        forces_by_schema=True,
    ),
    turns=TurnFlags(
        orders_results=True,  # W103
        refuses_empty_answers=False,
    ),
    thinking=ThinkingFlags(
        form="switch",  # W106
        efforts=EFFORTS,
    ),
    media=MediaFlags(
        kinds=("image", "audio"),
        takes_image_urls=False,  # W105
        details=None,  # it has none, which is reported where the image is written
        in_results=True,
    ),
    schemas=SchemaFlags(takes_strict_tools=False),
    state=StateFlags(fields=()),
    sampling=SamplingFlags(host_fields=("min_p", "repetition_penalty", "typical_p")),
    fields=FieldFlags(needs_model=True),
)  # fmt: skip


# --- the state of decoding and encoding one body


class OllamaReading(Reading):
    """Also tracks the tool names of calls: a result may name its tool or its call (W103)."""

    __slots__ = ("names",)

    def __init__(self, origin: Origin | None, calls: CallIds) -> None:
        super().__init__(origin, calls)
        self.names: dict[str, str] = {}
        """Tool names by call id."""


class OllamaWriting(Writing):
    """Also tracks the tool names of calls: a result names both its tool and its call (W103)."""

    __slots__ = ("names",)

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.names: dict[str, str] = {}
        """Tool names by call id."""

    @classmethod
    def of_response(cls) -> Self:
        """The state for a response."""
        writing = cls(TARGET)
        writing.place, writing.is_response = "choices[0].message.parts[{1}]", True
        return writing

    def lose_unsupported(self, part: Part) -> None:
        """Report the cache hint and the signature of a part as lost: neither is supported."""
        if part.cache is not None:
            self.lose_here(
                "cache hints are not supported: the server caches prompts by itself", ".cache"
            )
        if part.signature is not None:
            self.lose_here("another provider's signature is left out", ".signature")

    def lose_name(self, message: Message) -> None:
        """Report the name of the current message as lost, if it has one."""
        if message.name is not None:
            path = self.place.rpartition(".")[0].format(self.message)
            self.lose(f"{path}.name", "message names are not supported")
