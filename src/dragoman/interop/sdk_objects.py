"""Reads objects of the vendors' SDKs: openai, anthropic, google-genai, groq, mistralai and others.

Each dialect declares which modules define its objects (`Description.sdk_modules`). They are
pydantic models of the wire JSON, so their dump is what the dialect decodes. A whole response is
decoded as one, which keeps its usage, finish reason, model and id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.interop.object_data import dump_model, plain, refuse
from dragoman.interop.peers.litellm import with_thinking_blocks
from dragoman.model.messages import Message
from dragoman.wire.description import Description, SdkModule
from dragoman.wire.detection import evidence
from dragoman.wire.dialect import dialect

T = TypeVar("T")


# Suffixes of classes that are chunks of a stream.
_PIECES = ("Chunk", "Delta", "Event", "StreamingChoices", "ModelResponseStream")
# Fields that the SDKs' parsing helpers add: the same content, as the user's own type.
_PARSED = frozenset({"parsed", "parsed_arguments", "parsed_output"})
_GIVEN = frozenset({"input", "arguments"})  # of tools, whose fields may have any names


class _Home(NamedTuple):
    """The SDK module that defines a class."""

    dialect: Description
    module: SdkModule
    kind: str
    """The name of the class there."""


def read_sdk_object(value: Any) -> dict[str, Any] | Message | None:
    """An SDK object in its wire form, or as a message if it is a whole response."""
    home = _home_of(type(value))
    wire = None if home is None else _wire(value, home)
    if home is None or wire is None:
        return None
    if home.module.is_response(home.kind, wire):
        return _answer(value, home.dialect.name, wire)
    if home.module.prefix.startswith("litellm") and "role" in wire:
        return _litellm_message(value, home.dialect.name, wire)
    return wire


def sdk_wire(value: object) -> tuple[str, dict[str, Any]] | None:
    """The dialect of an SDK object and its wire form, responses included."""
    home = _home_of(type(value))
    wire = None if home is None else _wire(value, home)
    return None if home is None or wire is None else (home.dialect.name, wire)


def nested_wire(value: object) -> dict[str, Any] | None:
    """An SDK object inside other data, such as a content block in a dict; None for others."""
    found = sdk_wire(value)
    return None if found is None else found[1]


def _home_of(kind: type) -> _Home | None:
    """The SDK module that defines a class or one of its bases."""
    modules = evidence().sdk_modules
    for base in kind.__mro__:
        name: object = base.__module__
        if isinstance(name, str):
            for described, module in modules:
                if name.startswith(module.prefix):
                    return _Home(described, module, base.__name__)
    return None


# --- dumps


def _wire(value: Any, home: _Home) -> dict[str, Any] | None:
    """The wire JSON; None for an object that is neither a message nor a part of one."""
    module, kind = home.module, home.kind
    if module.classes is not None and kind not in module.classes:
        return None
    wire = _dump(value, module)
    if module.classes is None and kind.endswith(_PIECES) and not module.has_chunks:
        refuse(value, "is a chunk of a stream, not a message; pass the complete response")
    wrapped = wire if module.wrap is None else module.wrap(kind, wire)
    is_whole = wrapped is not wire or not home.dialect.response_fields.isdisjoint(wire)
    if is_whole or module.classes is not None:
        return wrapped
    for name in ("role", "type"):  # unset defaults are not in the dump
        default = getattr(value, name, None) if name not in wire else None
        if isinstance(default, str) and name in getattr(type(value), "model_fields", ()):
            wire[name] = default
    return wire if "role" in wire or "type" in wire else None


def _dump(value: Any, module: SdkModule) -> dict[str, Any]:
    dumped = dump_model(value, by_alias=True, **{module.dump: True})
    wire = plain(value, _without_parsed(dumped, type(value)))
    if not isinstance(wire, dict):
        refuse(value, "is not a JSON object")
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


# --- whole responses


def _answer(value: object, name: str, wire: dict[str, Any]) -> Message:
    """The single message of a response."""
    response = decoded(value, lambda: dialect(name).decode_response(wire))
    if len(response.choices) != 1:
        count = len(response.choices)
        refuse(value, f"has {count} choices; pass the message of the one to continue with")
    message = response.message
    if response.created_at is not None and message.created_at is None:
        message = message.replace(created_at=response.created_at)
    return with_thinking_blocks(message)


def _litellm_message(value: object, name: str, wire: dict[str, Any]) -> Message:
    spoken = dialect(name)
    body = {spoken.messages_field: [wire]}
    request = decoded(value, lambda: spoken.decode_request(body))
    return with_thinking_blocks(request.messages[0])


def decoded(value: object, decode: Callable[[], T]) -> T:
    """Run a decoder; what the dialect refuses is the caller's error, naming the type."""
    try:
        found = decode()
    except InvalidInputError:
        raise
    except DragomanError as error:
        problem = f"can't be read: {error}"
    else:
        return found
    return refuse(value, problem)
