"""The `openai-chat` dialect: its description and default target, and encoder state.

A canonical value often has several spellings in this dialect: thinking as `reasoning` or
`reasoning_content`, a limit as `max_tokens` or `max_completion_tokens`, a call with or without
`type`. The original spelling is recorded as a word in the overlay. Without a word, encoders use
the spelling of OpenAI's own API. A word that begins with `-` means that a field was missing or
invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Origin, Part, Thinking
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall
from dragoman.wire.description import Description, MessageForm, Readable, SdkModule, Wire
from dragoman.wire.flags import FieldFlags, IdFlags, MediaFlags
from dragoman.wire.fronts import StateFields
from dragoman.wire.openai_chat.tools_provider import FORMS
from dragoman.wire.openai_chat.tools_provider_calls import CALLS
from dragoman.wire.openai_settings import IMAGE_DETAILS, SAMPLING_RANGES
from dragoman.wire.overlay import extras_of, words_of
from dragoman.wire.settings_table import flag, number
from dragoman.wire.shared_settings import SharedSetting, SharedSettings
from dragoman.wire.target import Target
from dragoman.wire.writing import Writing

NAME = "openai-chat"
ORIGIN = Origin(dialect=NAME)
"""The origin of parts decoded from a request, whose provider is unknown."""
DETAILS = "reasoning_details"
BLOCKS = "thinking_blocks"
"""LiteLLM: Claude's own blocks."""
SHOWN = "shown"
"""The overlay word for another provider's thinking in details: clients show the text field."""

_CHOICES = frozenset({"Choice", "ParsedChoice", "Choices", "ChatCompletionChoice"})


def _is_response(_kind: str, wire: Wire) -> bool:
    return "choices" in wire


def _wrapped(kind: str, wire: dict[str, Any]) -> dict[str, Any]:
    """Wrap a choice in a response."""
    return {"choices": [wire]} if kind in _CHOICES else wire


def _sdk(prefix: str, *, sets_all: bool = False, has_chunks: bool = False) -> SdkModule:
    return SdkModule(
        prefix,
        "exclude_none" if sets_all else "exclude_unset",
        _is_response,
        wrap=_wrapped,
        has_chunks=has_chunks,
    )


def _readable(part: Wire) -> Readable | None:
    """The text of a document part (Groq, Cohere)."""
    document = part.get("document") if part.get("type") == "document" else None
    data = document.get("data") if isinstance(document, Mapping) else None
    if not isinstance(document, Mapping) or data is None:
        return None
    is_whole = part.keys() <= {"type", "document"} and document.keys() <= {"id", "data"}
    if isinstance(data, str):
        return Readable(data, is_whole)
    if not isinstance(data, Mapping):
        return None
    texts = [f"{key}: {text}" for key, text in data.items() if isinstance(text, str)]
    return Readable("\n".join(texts), is_whole and len(texts) == len(data))


def _documents(fields: Wire) -> tuple[str, Readable] | None:
    """The `documents` field of a request (Groq, Cohere)."""
    given = fields.get("documents")
    if not isinstance(given, (list, tuple)) or not given:
        return None
    read = [_document(each) for each in given]
    texts = [each.text for each in read if each is not None and each.text]
    is_whole = all(each is not None and each.is_whole for each in read)
    return "documents", Readable("\n\n".join(texts), is_whole)


def _document(wire: Any) -> Readable | None:
    if isinstance(wire, str):
        return Readable(wire, is_whole=True)
    if not isinstance(wire, Mapping):
        return None
    source = wire.get("source")
    if not isinstance(source, Mapping):
        return _readable({"type": "document", "document": wire})
    data = source.get("data", source.get("text"))
    read = _readable({"type": "document", "document": {"data": data}})
    is_whole = wire.keys() <= {"source", "id"} and source.keys() <= {"type", "data", "text"}
    return read and read._replace(is_whole=read.is_whole and is_whole)


_FORMATS = {"parsed": True, "hidden": False}

HOST_SETTINGS = SharedSettings(
    SharedSetting("min_p", "min_p", number),
    SharedSetting("repetition_penalty", "repetition_penalty", number),
    SharedSetting("repeat_penalty", "repetition_penalty", number),
    SharedSetting("typical_p", "typical_p", number),
    SharedSetting("include_reasoning", "thinking.visible", flag),
    SharedSetting(
        "reasoning_format",
        "thinking.visible",
        lambda value: _FORMATS.get(value) if isinstance(value, str) else None,
        lambda is_shown: "parsed" if is_shown else "hidden",
    ),
)
"""Settings of other servers of this dialect that OpenAI's API does not have."""

DESCRIPTION = Description(
    name=NAME,
    about="OpenAI's Chat Completions API, with the extensions of other servers that speak it",
    messages_field="messages",
    answer_field="choices",
    order=90,  # the fallback, since most servers speak it
    paths=("/chat/completions",),
    fields=frozenset({"choices", "max_completion_tokens", "response_format", "functions", "stop",
                      "n", "logprobs", "stream_options", "reasoning_effort", "frequency_penalty",
                      "presence_penalty", "parallel_tool_calls", "seed"}),
    tool_fields=frozenset({"function", "custom"}),
    is_likely=lambda wire: isinstance(wire.get("messages"), list),
    response_fields=frozenset({"choices"}),
    timings=frozenset({"queue_time", "prompt_time", "completion_time", "total_time", "timings"}),
    possible_response_fields=frozenset({"usage"}),
    readable=_readable,
    writes_settings=True,
    host_settings=HOST_SETTINGS,
    documents=_documents,
    provider_tools=FORMS,
    provider_calls=CALLS,
    carried="dragoman.wire.openai_chat.carried",
    returned_fields=frozenset({BLOCKS, "extra_content", "provider_specific_fields"}),
    messages=MessageForm(
        roles=frozenset({"system", "developer", "user", "assistant", "tool", "function"}),
        own_roles=frozenset({"developer", "tool", "function"}),
        fields=frozenset({"role", "content", "name", "tool_calls", "tool_call_id", "function_call",
                          "refusal", "annotations", "audio", "images", "executed_tools",
                          "reasoning", "reasoning_content", "reasoning_details",
                          "thinking_blocks", "cache_control", "extra_content", "prefix",
                          "partial"}),
        own_fields=frozenset({"tool_calls", "function_call", "refusal", "annotations", "audio",
                              "reasoning", "reasoning_content", "reasoning_details",
                              "executed_tools"}),
        part_types=frozenset({"image_url", "input_audio", "file", "refusal", "video_url"}),
        resembles_ours=True,
    ),
    sdk_modules=(
        _sdk("openai.types.chat"),
        _sdk("groq.types.chat"),
        _sdk("mistralai.", sets_all=True, has_chunks=True),
        _sdk("litellm.types", sets_all=True),
    ),
)  # fmt: skip


# --- the default target: OpenAI's own API

RANGES = {**SAMPLING_RANGES, "presence_penalty": (-2, 2), "frequency_penalty": (-2, 2)}
"""The ranges of sampling settings, by their names in the model."""
TARGET = Target(
    dialect=NAME,
    provider="openai",
    unsupported_part_fields=(
        "Text.signature", "Image.signature", "Image.name", "Image.mime", "Audio.signature",
        "Audio.name", "Audio.mime", "Audio.detail", "Audio.transcript", "Video.signature",
        "Video.name", "Video.mime", "Video.detail", "File.signature", "File.mime", "File.detail",
        "Thinking.cache", "Refusal.signature", "Refusal.cache", "ToolCall.cache",
        "ToolResult.signature", "ToolResult.cache", "ServerToolCall.signature",
        "ServerToolCall.cache", "ServerToolCall.server", "ServerToolResult.signature",
        "ServerToolResult.cache", "Opaque.signature", "Opaque.cache",
    ),
    ids=IdFlags(max_length=40),  # W5: longer ones are refused
    media=MediaFlags(details=IMAGE_DETAILS),
    fields=FieldFlags(needs_model=True),
)  # fmt: skip


# --- state of other providers in this dialect: `reasoning_details`, and Gemini's field on calls
#
# The details follow OpenRouter, whose clients send them back; the SDK requires their index.


def _as_detail(part: Thinking, number: int, _message_id: Callable[[], str]) -> Thinking:
    return part.replace(extras=extras_of({"index": number}, NAME, (DETAILS, SHOWN)))


STATE_FIELDS = StateFields(ORIGIN, native=(ToolCall,), is_flat=True, complete_thinking=_as_detail)


# --- the same for clients of Mistral's SDK, whose types drop both fields
#
# They have thinking as parts of the content, whose `signature` they send back.

BARE = "bare"
"""The overlay word for a `thinking` part of the content without a text."""
_CHUNK = extras_of({}, NAME, ("content",))
_BARE_CHUNK = extras_of({}, NAME, ("content", BARE))


def _as_chunk(part: Thinking, _number: int, _message_id: Callable[[], str]) -> Thinking:
    return part.replace(extras=_CHUNK if part.text else _BARE_CHUNK)


def _as_chunk_if_readable(part: Thinking, number: int, message_id: Callable[[], str]) -> Thinking:
    return part.replace(extras=_CHUNK) if part.text else _as_detail(part, number, message_id)


def _is_no_thought(part: Part) -> bool:
    return not isinstance(part, Thinking) or "content" in words_of(part.extras, NAME)


def _is_stateless(part: Part) -> bool:
    return _is_no_thought(part) and not (isinstance(part, ToolCall) and part.signature is not None)


_CHUNKS = StateFields(
    ORIGIN, carriers="signature", complete_thinking=_as_chunk, accepts=_is_stateless
)
_READABLE_CHUNKS = StateFields(
    ORIGIN,
    native=(ToolCall,),
    complete_thinking=_as_chunk_if_readable,
    accepts=_is_no_thought,
)


def chunk_fields(request: Request) -> StateFields:
    """Where a Mistral client keeps thinking and state.

    With thinking, the content of a message is a list. A client that didn't ask for thinking may
    expect a string, so it gets a list only if there is something to read in it.
    """
    thinking = request.thinking
    is_asked = thinking is not None and thinking.enabled is not False and thinking.effort != "none"
    mode = request.extras.get(NAME, EMPTY).get("prompt_mode")
    return _CHUNKS if is_asked or mode == "reasoning" else _READABLE_CHUNKS


# --- overlay words for missing fields


def is_own(origin: Origin | None) -> bool:
    """Whether an origin is this dialect."""
    return origin is ORIGIN or (origin is not None and origin.dialect == NAME)


def absent(found: Collection[str], *keys: str) -> list[str]:
    """Overlay words for keys that were missing or invalid."""
    return [f"-{key}" for key in keys if key not in found]


def without_absent(body: dict[str, Any], extras: Mapping[str, Any]) -> dict[str, Any]:
    """The body without the fields that were missing originally."""
    for word in words_of(extras, NAME):
        if isinstance(word, str) and word.startswith("-"):
            body.pop(word[1:], None)
    return body


# --- encoder state


class ChatWriting(Writing):
    """The encoder state of a body, with what later messages need from earlier ones."""

    __slots__ = ("hoisted", "legacy", "thinking_field", "words")

    def __init__(self, target: Target = TARGET, *, is_response: bool = False) -> None:
        super().__init__(target, is_response=is_response)
        if is_response:
            self.place = "choices[{}].message.parts[{}]"
        self.thinking_field = "reasoning_content"
        """Where the reader of a stream looks for thinking."""
        self.legacy: set[str] = set()
        """Ids of calls written as `function_call`."""
        self.words: Collection[Any] = ()
        """Notes on how the settings of the request were spelled."""
        self.hoisted: list[dict[str, Any]] = []
        """Media of tool results, to be sent in a user message (W1)."""

    def lose_part(self, part: Part) -> None:
        """Report the current part as lost."""
        self.lose_here(f"{type(part).__name__} is not supported in this message")
