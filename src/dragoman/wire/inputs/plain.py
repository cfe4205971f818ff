"""Mappings and sequences of any kind as the dicts and lists that decoders look for."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import MAX_DEPTH
from dragoman.model.value import Value
from dragoman.wire.inputs.objects import read_object

_DEEPEST = 2 * MAX_DEPTH  # of a request; what is in it may nest half as deep
_MOST = 1_000_000  # values in one dict; shared references can make a small object look endless
_SCALARS = frozenset({str, int, float, bool, type(None)})


def plain(value: Any) -> Any:
    """A copy made of dicts, lists and JSON's scalars; parts and other values of ours stay.

    Objects of other libraries (`{"content": response.content}`) become the dicts that they stand
    for. Raises for anything else, by its type, and for what holds itself.
    """
    return _Copier().copy(value, None)


class _Copier:
    """Copies one value, and knows where it is and how much it has seen."""

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
            return str.__str__(value)  # a member of an enum, say: `{"role": Role.USER}`
        if issubclass(kind, (int, float, Value)):
            return value
        if key == "data" and issubclass(kind, (bytes, bytearray, memoryview)):
            return b64encode(value).decode("ascii")  # media, as google-genai's dicts hold them
        known = _known(value)
        if known is None:
            msg = f"a message dict can't hold {_kind_name(value)}"
            raise InvalidInputError(msg)
        return self._copy_container(known)

    def _copy_container(self, value: Any) -> Any:
        if id(value) in self._around or len(self._around) > _DEEPEST or self._seen > _MOST:
            msg = "the message holds itself, nests too deeply, or holds too many values"
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
    msg = f"the fields of a message dict are named by texts, not {_kind_name(key)}"
    raise InvalidInputError(msg)


def _known(value: Any) -> dict[str, Any] | list[dict[str, Any]] | None:
    """A content block or a tool call of another library as a dict; None for anything else."""
    known = read_object(value)
    if isinstance(known, dict):
        return known
    dump = getattr(type(value), "model_dump", None)  # pydantic's, as all SDKs' objects have it
    if known is not None or not callable(dump) or isinstance(value, type):
        return None
    try:
        dumped = dump(value, mode="json", by_alias=True, exclude_none=True)
    except Exception:  # noqa: BLE001 - whatever it is: it may quote the values
        return None
    return dumped if isinstance(dumped, dict) else None


def _kind_name(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"a value of type {type(value).__name__}"
