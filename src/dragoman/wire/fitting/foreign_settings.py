"""Carries over request fields from another dialect's extras that the target supports.

Some servers of a dialect have more settings than its vendor, and another dialect may have the same
ones: `min_p` of some Chat servers is `options.min_p` in Ollama. They are not part of the model,
since most targets would refuse them; a dialect lists them (`Description.host_settings`), and a host
declares which of them it accepts (`sampling.host_fields`). Documents beside the messages become
text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.parts import Text
from dragoman.model.requests import Request, ThinkingConfig
from dragoman.model.roles import Role
from dragoman.wire.description import Description
from dragoman.wire.dialect import description_of
from dragoman.wire.losses import Loss, Note
from dragoman.wire.overlay import is_spelling
from dragoman.wire.shared_settings import own_fields
from dragoman.wire.target import Target

_VISIBLE = "thinking.visible"


def with_foreign_settings(request: Request, target: Target, notes: list[Note]) -> Request:
    """Move settings and documents in other dialects' extras to where the target has them."""
    here = target.dialect
    for source in request.extras if request.extras is not EMPTY else ():
        described = None if source == here or is_spelling(source) else description_of(source)
        if described is not None and own_fields(request.extras, source):
            request = _with_settings(request, described, target)
            request = _with_documents(request, described, notes)
    return request


def _with_settings(request: Request, source: Description, target: Target) -> Request:
    found = source.host_settings.taken(own_fields(request.extras, source.name))
    if found is None:
        return request
    values, left = found
    if _VISIBLE in values:
        thinking = request.thinking or ThinkingConfig()
        if thinking.visible is None:
            request = request.replace_trusted(
                thinking=thinking.replace(visible=values.pop(_VISIBLE))
            )
    described = description_of(target.dialect)
    own = dict(own_fields(request.extras, target.dialect))
    unplaced = dict(values)
    for name, value in values.items():
        if described is None or name not in target.sampling.host_fields:
            continue
        lost: list[Note] = []
        described.host_settings.put(own, {name: value}, "", lost)
        if not lost:
            del unplaced[name]
    source.host_settings.put(left, unplaced, "", [])  # unsupported ones are reported with the rest
    extras = {**request.extras, source.name: left, target.dialect: own}
    return request.replace(extras={key: fields for key, fields in extras.items() if fields})


def _with_documents(request: Request, source: Description, notes: list[Note]) -> Request:
    """Append documents beside the messages as text to the first user message."""
    own = own_fields(request.extras, source.name)
    found = None if source.documents is None else source.documents(own)
    index = next((i for i, m in enumerate(request.messages) if m.role is Role.USER), None)
    if found is None or index is None or not found[1].text:
        return request
    field, read = found
    messages: list[Message] = list(request.messages)
    asked = messages[index]
    messages[index] = asked.replace_unchecked(parts=(*asked.parts, Text(read.text)))
    if not read.is_whole:
        notes.append(Loss(f"extras.{field}", "only its text can be sent"))
    left: Mapping[str, Any] = {key: value for key, value in own.items() if key != field}
    others = {key: value for key, value in request.extras.items() if key != source.name}
    return request.replace(
        messages=tuple(messages), extras={**others, source.name: left} if left else others
    )
