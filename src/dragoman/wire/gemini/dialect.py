"""The `gemini` dialect: field names, description, default target, URL paths, encoder state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from dragoman.errors import InvalidInputError
from dragoman.model.media import Media
from dragoman.model.name_cache import cached_by_name
from dragoman.model.parts import Origin
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.description import Description, MessageForm, SdkModule, Wire
from dragoman.wire.flags import CacheFlags, MediaFlags, StateFlags, ToolFlags, TurnFlags
from dragoman.wire.fronts import StateFields
from dragoman.wire.gemini.tools_provider import CALLS, FORMS
from dragoman.wire.rows import snake
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing as AnyWriting

NAME = "gemini"
ORIGIN = Origin(dialect=NAME)
"""The origin of request parts with opaque state; their model is unknown."""

SIGNATURE = "thoughtSignature"
"""Allowed on any part, and must stay on the part it was received with (W83)."""

SENTINEL = "skip_thought_signature_validator"
"""Replaces a signature where no valid one exists (W84)."""
STAND_INS = frozenset({
    SENTINEL,
    "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",  # sent by clients whose signatures are bytes
    "context_engineering_is_the_way_to_go",
    "Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv",
})  # fmt: skip


def snake_names(*names: str) -> dict[str, str]:
    """Map the snake_case forms of names to the names: `{"file_uri": "fileUri"}`."""
    return {snake(name): name for name in names if snake(name) != name}


def camel_case(name: object) -> str:
    """A name in the API's own camelCase; a caller's dict may have keys that aren't texts."""
    first, *others = str(name).split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in others)


# --- description

_PARTS = ("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode",
          "codeExecutionResult", "thought", "thoughtSignature", "videoMetadata", "toolCall",
          "toolResponse")  # fmt: skip
_INTERACTION_FIELDS = frozenset({"generation_config", "system_instruction", "agent",
                                 "response_modalities"})  # fmt: skip
_STEPS = ("user_input", "model_output", "thought", "function_result")


def _interactions(wire: Wire, path: str) -> str | None:
    """The message for a body of the Interactions API, whose `input` resembles Responses."""
    if path.endswith("/interactions") or _is_interaction(wire):
        return "Gemini's Interactions API is not supported; the dialect `gemini` is generateContent"
    return None


def _is_interaction(wire: Wire) -> bool:
    """Whether a body is of the Interactions API; a plain text as `input` counts as Responses."""
    if wire.get("object") == "interaction" or "previous_interaction_id" in wire:
        return True
    if "input" not in wire:
        return False
    given = wire["input"] if isinstance(wire["input"], list) else ()
    steps = [step for step in given if isinstance(step, Mapping)]
    return not _INTERACTION_FIELDS.isdisjoint(wire) or any(
        step.get("role") == "model" or step.get("type") in _STEPS for step in steps
    )


def _wrapped(kind: str, wire: dict[str, Any]) -> dict[str, Any]:
    """Wrap a candidate in a response, and an uploaded file in a part."""
    if kind == "Candidate":
        return {"candidates": [wire]}
    if kind != "File":
        return wire
    fields = {"fileUri": wire.get("uri"), "mimeType": wire.get("mimeType")}
    return {"fileData": {key: field for key, field in fields.items() if field is not None}}


DESCRIPTION = Description(
    name=NAME,
    about="Google Gemini: `generateContent`, of the Gemini API and of Vertex AI",
    messages_field="contents",
    system_field="systemInstruction",
    answer_field="candidates",
    order=20,
    paths=(":generateContent", ":streamGenerateContent"),
    fields=frozenset({"contents", "candidates", "generationConfig", "generation_config",
                      "systemInstruction", "system_instruction", "usageMetadata",
                      "promptFeedback"}),
    unsupported=_interactions,
    response_fields=frozenset({"candidates", "promptFeedback", "usageMetadata"}),
    writes_settings=True,
    provider_tools=FORMS,
    provider_calls=CALLS,
    messages=MessageForm(
        content_field="parts",
        roles=frozenset({"user", "model"}),
        fields=frozenset({"role", "parts"}),
        part_fields=frozenset({*_PARTS, *snake_names(*_PARTS)}),  # those of the API, and of its SDK
        role_names={Role.ASSISTANT: "model", Role.TOOL: "user"},
        model_parts=frozenset({"functionCall", "function_call"}),
    ),
    sdk_modules=(
        SdkModule(
            "google.genai.types",
            "exclude_none",
            lambda kind, wire: kind == "GenerateContentResponse" or "candidates" in wire,
            classes=frozenset({"Content", "UserContent", "ModelContent", "Part", "File",
                               "Candidate", "GenerateContentResponse"}),
            wrap=_wrapped,
        ),
    ),
    tool_input_count="toolUsePromptTokenCount",
)  # fmt: skip


# --- the default target: Google's own API

RANGES = {"temperature": (0, 2)}
"""The ranges of sampling settings, by their names in the model."""
TARGET = Target(
    dialect=NAME,
    provider="google",
    tools=ToolFlags(
        name_pattern=r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}",  # W89
        max_name_length=128,
    ),
    turns=TurnFlags(
        groups_results=True,  # W78
        merges_neighbours=True,
        needs_message=True,  # W75
        refuses_empty_messages=True,  # W76
        refuses_empty_answers=False,
        prefill="uncertain",  # W79: the newest models refuse it, so this is the safe default
        refuses_call_first=True,  # W77
        doubts_empty_text=True,  # W76; recordings show that Google accepts them
    ),
    media=MediaFlags(
        takes_bucket_urls=True, details=("auto", "low", "medium", "high", "ultra_high")
    ),
    state=StateFlags(fields=("cached_content", "continuation_token", "store")),
    cache=CacheFlags(
        max_hints=0,  # cached content is referred to by name, not marked on parts
    ),
)


# --- state of other providers in this dialect: a `thoughtSignature` on any part

STATE_FIELDS = StateFields(Origin(dialect=NAME), carriers="signature", native=(ToolCall, Media))


# --- the path of a request: it holds the model, and whether the response is streamed

_COLLECTIONS = frozenset({"models", "tunedModels", "endpoints", "publishers", "projects"})
_METHODS = {"generateContent": False, "streamGenerateContent": True}


def decode_path(path: str | None) -> tuple[str | None, bool | None]:
    """The model, and whether to stream.

    >>> decode_path("/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse")
    ('gemini-2.5-pro', True)

    Vertex AI's longer paths hold the model in the same way.
    """
    if path is None:
        return None, None
    place, _, method = path.partition("?")[0].rpartition(":")
    stream = _METHODS.get(method)
    return (None if stream is None else bare_model(unquote(place)) or None), stream


def path_model(path: str | None) -> str | None:
    """The model in the path of any method; None if there is none.

    >>> path_model("/v1beta/models/gemini-embedding-001:embedContent")
    'gemini-embedding-001'
    """
    place, colon, _ = ("" if path is None else path.partition("?")[0]).rpartition(":")
    return bare_model(unquote(place)) or None if colon else None


@cached_by_name(256)
def encode_path(model: str, *, stream: bool) -> str:
    """The path of a request for a model.

    >>> encode_path("gemini-2.5-pro", stream=False)
    '/v1beta/models/gemini-2.5-pro:generateContent'

    Raises if the name is not valid: it must not change the path.
    """
    steps = model.split("/")
    if any(step in {"", ".", ".."} for step in steps) or not model.isprintable():
        msg = "the model name is empty, or not valid in a URL path"
        raise InvalidInputError(msg)
    # Only resource names have path segments; a slash in any other name is escaped.
    place = quote(model) if steps[0] in _COLLECTIONS else f"models/{quote(model, safe='')}"
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/{place}:{method}"


def bare_model(name: str) -> str:
    """A resource name without its prefix: `models/x` becomes `x`."""
    _, found, model = f"/{name}".rpartition("/models/")
    return model if found else "/".join(name.split("/")[-2:])  # tunedModels/…, endpoints/…


# --- encoder state

_RESPONSE_TARGET = Target(dialect=NAME)


class Writing(AnyWriting):
    """Also tracks calls, for their results, and media to be sent after the results.

    Without a target it is for a response, which any client of the dialect can read.
    """

    __slots__ = ("calls", "hoisted", "order")

    def __init__(self, target: Target | None = None) -> None:
        if target is None:
            place = "choices[{}].message.parts[{}]"
            super().__init__(_RESPONSE_TARGET, place=place, is_response=True)
        else:
            super().__init__(target)
        self.calls: dict[str, ToolCall] = {}
        self.order: dict[str, tuple[int, int]] = {}
        """Positions of calls by id."""
        self.hoisted: list[Any] = []
        """Media of tool results that must be sent after the results (W96)."""

    def add_call(self, call: ToolCall) -> None:
        """Record the current call for its results."""
        self.calls[call.id] = call
        self.order[call.id] = (self.message, self.part)
