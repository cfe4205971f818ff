"""Objects of the vendors' SDKs: openai, anthropic, google-genai, groq, mistralai, ollama, litellm.

They are pydantic models of the wire's own JSON, so their dump is what the dialect reads. A whole
response is decoded as one, which keeps its usage, finish reason, model and id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.messages import Message
from dragoman.wire.dialect import dialect
from dragoman.wire.inputs.litellm_fields import with_thinking_blocks
from dragoman.wire.inputs.object_data import dump_model, plain, refuse

T = TypeVar("T")


class _Home(NamedTuple):
    """A module of an SDK that defines what goes over the wire."""

    prefix: str
    dialect: str
    dump: str
    """What of an object's fields its JSON has: those that were set, or those that are not None."""


_HOMES = (
    _Home("openai.types.chat", "openai-chat", "exclude_unset"),
    _Home("openai.types.responses", "openai-responses", "exclude_unset"),
    _Home("groq.types.chat", "openai-chat", "exclude_unset"),
    _Home("mistralai.", "openai-chat", "exclude_none"),
    _Home("litellm.types", "openai-chat", "exclude_none"),
    _Home("anthropic.types", "anthropic", "exclude_unset"),
    _Home("google.genai.types", "gemini", "exclude_none"),
    _Home("ollama._types", "ollama", "exclude_none"),
)
_CHOICES = frozenset({"Choice", "ParsedChoice", "Choices", "ChatCompletionChoice"})
_GOOGLE = frozenset({"Content", "UserContent", "ModelContent", "GenerateContentResponse", "Part"})
_PIECES = ("Chunk", "Delta", "Event", "StreamingChoices", "ModelResponseStream")
# What the SDKs' parsing helpers add to the wire's objects: the same again, as the user's own type.
_PARSED = frozenset({"parsed", "parsed_arguments", "parsed_output"})
_GIVEN = frozenset({"input", "arguments"})  # of tools, which may have any names
_ANSWERS = frozenset({"choices", "output", "candidates", "stop_reason"})


def read_sdk_object(value: Any) -> dict[str, Any] | Message | None:
    """An SDK's object in its wire form, or as a message where it is a whole response."""
    found = _home_of(type(value))
    if found is None:
        return None
    home, kind = found
    wire = _wire(value, home, kind)
    if wire is None:
        return None
    if kind == "GenerateContentResponse" or _is_response(wire, home):
        return _answer(value, home.dialect, wire)
    if home.prefix.startswith("litellm") and "role" in wire:
        return _litellm_message(value, wire)
    return wire


def sdk_wire(value: object) -> tuple[str, dict[str, Any]] | None:
    """The dialect of an SDK's object and its wire form, responses included."""
    found = _home_of(type(value))
    wire = None if found is None else _wire(value, *found)
    return None if found is None or wire is None else (found[0].dialect, wire)


def nested_wire(value: object) -> dict[str, Any] | None:
    """An SDK's object inside other data, such as a content block in a dict; None for others."""
    found = sdk_wire(value)
    return None if found is None else found[1]


def _home_of(kind: type) -> tuple[_Home, str] | None:
    """Where the SDK defines the class or the one it is derived from, and its name there."""
    for base in kind.__mro__:
        module: object = base.__module__
        if isinstance(module, str):
            for home in _HOMES:
                if module.startswith(home.prefix):
                    return home, base.__name__
    return None


# --- dumps


def _wire(value: Any, home: _Home, kind: str) -> dict[str, Any] | None:
    """The wire's JSON; None for what is neither a message nor a part of one."""
    if home.dialect == "gemini" and kind not in _GOOGLE:
        return _google_other(value, home, kind)
    wire = _dump(value, home)
    if home.dialect == "ollama":
        return wire if kind in {"Message", "ChatResponse"} else None
    if kind.endswith(_PIECES) and home.prefix != "mistralai.":  # whose parts of content are chunks
        refuse(value, "is a piece of a stream, not a message; hand in the whole answer")
    if kind in _CHOICES:
        return {"choices": [wire]}
    if home.dialect == "gemini" or not _ANSWERS.isdisjoint(wire):
        return wire
    for name in ("role", "type"):  # defaults that nobody set are not in the dump
        default = getattr(value, name, None) if name not in wire else None
        if isinstance(default, str) and name in getattr(type(value), "model_fields", ()):
            wire[name] = default
    return wire if "role" in wire or "type" in wire else None


def _dump(value: Any, home: _Home) -> dict[str, Any]:
    dumped = dump_model(value, by_alias=True, **{home.dump: True})
    wire = plain(value, _without_parsed(dumped, type(value)))
    if not isinstance(wire, dict):
        refuse(value, "is not an object of JSON")
    return wire


def _without_parsed(dumped: Any, kind: type) -> Any:
    if not any("Parsed" in base.__name__ for base in kind.__mro__):
        return dumped
    return _pruned(dumped)


def _pruned(dumped: Any) -> Any:
    if isinstance(dumped, dict):
        return {
            key: item if key in _GIVEN else _pruned(item)
            for key, item in dumped.items()
            if key not in _PARSED
        }
    return [_pruned(item) for item in dumped] if isinstance(dumped, list) else dumped


def _google_other(value: Any, home: _Home, kind: str) -> dict[str, Any] | None:
    if kind == "File":  # an uploaded one, as `contents` takes it
        wire = _dump(value, home)
        fields = {"fileUri": wire.get("uri"), "mimeType": wire.get("mimeType")}
        return {"fileData": {key: field for key, field in fields.items() if field is not None}}
    return {"candidates": [_dump(value, home)]} if kind == "Candidate" else None


# --- whole responses


def _is_response(wire: Mapping[str, Any], home: _Home) -> bool:
    if home.dialect == "ollama":
        return isinstance(wire.get("message"), dict)
    if home.dialect == "anthropic":
        return wire.get("type") == "message" and "role" in wire
    if home.dialect == "openai-responses":
        return isinstance(wire.get("output"), list) and "type" not in wire
    return "choices" in wire or "candidates" in wire


def _answer(value: object, name: str, wire: dict[str, Any]) -> Message:
    """The one message of a response."""
    response = decoded(value, lambda: dialect(name).decode_response(wire))
    if len(response.choices) != 1:
        count = len(response.choices)
        refuse(value, f"holds {count} answers; hand in the message of the one to continue with")
    message = response.message
    if response.created_at is not None and message.created_at is None:
        message = message.replace(created_at=response.created_at)
    return with_thinking_blocks(message)


def _litellm_message(value: object, wire: dict[str, Any]) -> Message:
    body = {"messages": [wire]}
    request = decoded(value, lambda: dialect("openai-chat").decode_request(body))
    return with_thinking_blocks(request.messages[0])


def decoded(value: object, decode: Callable[[], T]) -> T:
    """What a dialect reads; what it refuses is the caller's to mend, and named by its type."""
    try:
        found = decode()
    except InvalidInputError:
        raise
    except DragomanError as error:
        problem = f"can't be read: {error}"
    else:
        return found
    return refuse(value, problem)
