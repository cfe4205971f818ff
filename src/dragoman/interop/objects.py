"""Reads message objects of other libraries, recognised by class, without importing the libraries.

A class is recognised by the module in which it, or a base class, was defined. Attributes of an
object are never probed: mocks and proxies have all of them.
"""

from __future__ import annotations

import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.interop.object_data import Plain, dump_model, guarded, refuse
from dragoman.interop.peers import langchain, pydantic_ai
from dragoman.interop.sdk_objects import read_sdk_object
from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.messages import Message
from dragoman.model.value import Value

_PYDANTIC_AI = "pydantic_ai.messages"
_MAX_DEPTH = 2 * MAX_DEPTH  # of a request; its content may nest half as deep
_MAX_VALUES = 1_000_000  # values in one dict; shared references can make a small object look huge
_SCALARS = frozenset({str, int, float, bool, type(None)})


def read_object(
    value: object,
) -> dict[str, Any] | list[dict[str, Any]] | Message | list[Message] | None:
    """Read an object of a known library; None if it is of no known library.

    Objects of the vendors' SDKs become wire dicts, to be decoded together with their neighbours;
    whole responses and the messages of LangChain, pydantic-ai and LiteLLM become messages. Raises
    `InvalidInputError`, naming the type, if the object can't be read.
    """
    if isinstance(value, type):
        return None
    found = read_peer_object(value)
    return found if found is not None else read_sdk_object(value)


# --- LangChain and pydantic-ai


def read_peer_object(value: object) -> Message | list[Message] | None:
    """The message or messages in an object; None if it is of neither library."""
    if peer_of(type(value)) is None:
        return None
    found = read_peer_objects([value])
    return found[0] if len(found) == 1 else found


def read_peer_objects(values: Sequence[object]) -> list[Message]:
    """The messages in objects of one library."""
    if not values:
        return []
    is_langchain = peer_of(type(values[0])) == "langchain"
    dump = langchain_dump if is_langchain else pydantic_ai_dump
    decode = langchain.decode_messages if is_langchain else pydantic_ai.decode_messages
    dumps = [dump(value) for value in values]
    found: list[Message] = guarded(values[0], lambda: decode(dumps))
    return found


def peer_of(kind: type) -> str | None:
    """The library that a class, or one of its bases, was defined in."""
    for base in kind.__mro__:
        module: object = base.__module__
        if not isinstance(module, str):
            continue
        if module.startswith("langchain_core.messages") and base.__name__ == "BaseMessage":
            return "langchain"
        if module == _PYDANTIC_AI and base.__name__ in {"ModelRequest", "ModelResponse"}:
            return "pydantic-ai"
    return None


def langchain_dump(value: Any) -> dict[str, Any]:
    """The dump of a LangChain message, with the paths of values that can't be dumped."""
    reading = Plain(value)
    dump = guarded(value, lambda: reading.read(dump_model(value)))
    if not isinstance(dump, dict):
        refuse(value, "is not a message")
    if reading.unreadable:
        dump[langchain.UNREADABLE] = reading.unreadable
    return dump


def pydantic_ai_dump(value: object) -> dict[str, Any]:
    """The dump of a pydantic-ai message, made by its own adapter, which is loaded if it exists."""
    adapter = getattr(sys.modules.get(_PYDANTIC_AI), "ModelMessagesTypeAdapter", None)
    if adapter is None:
        refuse(value, "can't be read without pydantic-ai")
    reading = Plain(value)
    options: dict[str, Any] = {"mode": "json", "warnings": False, "fallback": reading.fallback}
    (dumped,) = guarded(value, lambda: adapter.dump_python([value], **options))
    dump = guarded(value, lambda: reading.read(dumped))
    if not isinstance(dump, dict):
        refuse(value, "is not a message")
    if reading.unreadable:
        dump[pydantic_ai.UNREADABLE] = True
    return dump


# --- mappings and sequences of any kind, which may contain such objects


def plain(value: Any) -> Any:
    """A copy made of dicts, lists and JSON scalars; parts and other values of ours are kept.

    Objects of other libraries (`{"content": response.content}`) become dicts. Raises for anything
    else, naming its type, and for circular references.
    """
    return _Copier().copy(value, None)


class _Copier:
    """Copies one value; tracks nesting, and the number of values seen."""

    __slots__ = ("_around", "_seen")

    def __init__(self) -> None:
        self._around: list[int] = []
        self._seen = 0

    def copy(self, value: Any, key: Any) -> Any:
        self._seen += 1
        kind = type(value)
        if kind in _SCALARS:
            return value
        if issubclass(kind, (Mapping, list, tuple)):
            return self._copy_container(value)
        if issubclass(kind, str):
            return str.__str__(value)  # such as an enum member: `{"role": Role.USER}`
        if issubclass(kind, (int, float, Value)):
            return value
        if key == "data" and issubclass(kind, (bytes, bytearray, memoryview)):
            return b64encode(value).decode("ascii")  # media, as in google-genai's dicts
        known = _known(value)
        if known is None:
            msg = f"a message dict can't contain {_kind_name(value)}"
            raise InvalidInputError(msg)
        return self._copy_container(known)

    def _copy_container(self, value: Any) -> Any:
        if id(value) in self._around or len(self._around) > _MAX_DEPTH or self._seen > _MAX_VALUES:
            msg = "the message contains itself, nests too deeply, or contains too many values"
            raise InvalidInputError(msg)
        self._around.append(id(value))
        if isinstance(value, Mapping):
            copied: Any = {_name(key): self.copy(item, key) for key, item in value.items()}
        else:
            copied = [self.copy(item, None) for item in value]
        self._around.pop()
        return copied


def _name(key: Any) -> str:
    if isinstance(key, str):
        return str.__str__(key)
    msg = f"the keys of a message dict must be strings, not {_kind_name(key)}"
    raise InvalidInputError(msg)


def _known(value: Any) -> dict[str, Any] | list[dict[str, Any]] | None:
    """A content block or tool call of another library as a dict; None for anything else."""
    known = read_object(value)
    if isinstance(known, dict):
        return known
    dump = getattr(type(value), "model_dump", None)  # pydantic's, which all SDK objects have
    if known is not None or not callable(dump) or isinstance(value, type):
        return None
    try:
        dumped = dump(value, mode="json", by_alias=True, exclude_none=True)
    except Exception:  # noqa: BLE001 - it may raise anything, and quote the values
        return None
    return dumped if isinstance(dumped, dict) else None


def _kind_name(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of type {type(value).__name__}"
