"""Fields that only another dialect knows: they stay behind, and that is told (I14)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.wire.losses import Loss

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
# How something was spelled: another dialect has its own way, and nothing is lost with it.
_SPELLING = frozenset({
    "type", "index", "status", "item", "format", "role", "id", "call_id", "thought",
    "thoughtSignature", "systemInstruction",
})  # fmt: skip
_NOTES = (":", "$")  # what dialects note for themselves
_BESIDE = (" instead", " facts")  # another spelling; what a library knows about a message


def left_behind(request: Request, dialect: str) -> Iterator[Loss]:
    """What a request says beyond the model, in another dialect's words."""
    for source, name in strange_fields(request.extras, dialect):
        path = f"extras.{name}" if _NAME.fullmatch(name) else "extras"
        yield Loss(path, f"only {source} knows it")
    for index, tool in enumerate(request.tools):
        for source, _ in strange_fields(getattr(tool, "extras", EMPTY), dialect):
            yield Loss(f"tools[{index}].extras", f"only {source} knows it")


def left_behind_in(
    messages: tuple[Message, ...], extended: Iterable[int], dialect: str
) -> Iterator[Loss]:
    """As `left_behind`, of messages and their parts, where they have any extras."""
    familiar: Mapping[str, Any] = EMPTY  # many share the same few notes
    for index in dict.fromkeys(extended):
        message = messages[index]
        if message.extras is not EMPTY and message.extras is not familiar:
            strange = tuple(strange_fields(message.extras, dialect))
            familiar = familiar if strange else message.extras
            for source, _ in strange:
                yield Loss(f"messages[{index}].extras", f"only {source} knows it")
        for place, part in enumerate(message.parts):
            if part.extras is not EMPTY:
                for source, _ in strange_fields(part.extras, dialect):
                    path = f"messages[{index}].parts[{place}].extras"
                    yield Loss(path, f"only {source} knows it")


def strange_fields(extras: Mapping[str, Any], dialect: str) -> Iterator[tuple[str, str]]:
    """The fields of other dialects in extras that say something, by dialect and name."""
    for source, fields in extras.items():
        if source == dialect or not isinstance(fields, dict) or source.endswith(_BESIDE):
            continue
        for name, value in fields.items():
            if value is None or name in _SPELLING or name.startswith(_NOTES):
                continue
            if value or value is False or value == 0:  # the empty says nothing
                yield source, name
