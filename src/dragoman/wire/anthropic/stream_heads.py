"""What a stream says of its message besides the content, as the plain form would say it."""

from __future__ import annotations

from typing import NamedTuple

from dragoman.model.frozen import FrozenDict
from dragoman.model.parts import Origin, Refusal
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire.anthropic.context import NAME, Block
from dragoman.wire.anthropic.response import decode_response
from dragoman.wire.anthropic.usage import decode_finish, decode_usage
from dragoman.wire.overlay import rest

_NAMED = frozenset({"id", "type", "role", "model"})
_USUAL = _NAMED | {"stop_reason", "stop_sequence", "stop_details", "usage"}
_READ = _NAMED | {"stop_reason", "usage"}
_READ_BEFORE = _READ - {"stop_reason"}  # while it is null


class Head(NamedTuple):
    """The response without its content."""

    id: str | None
    model: str | None
    origin: Origin | None
    usage: Usage | None
    finish: FinishReason | None
    finish_raw: str | None
    extras: FrozenDict
    refusal: Refusal | None


def head_of(fields: Block) -> Head:
    """What these fields of a message say."""
    return _plain(fields) or _any(fields)


def _plain(fields: Block) -> Head | None:
    """That of nearly every message, in a fifth of the time; None where there is more to it."""
    response_id, model, reason = fields.get("id"), fields.get("model"), fields.get("stop_reason")
    if not _NAMED <= fields.keys() <= _USUAL or fields["type"] != "message":
        return None
    if fields["role"] != "assistant" or type(response_id) is not str or type(model) is not str:
        return None
    if fields.get("stop_details") is not None or not (reason is None or type(reason) is str):
        return None
    usage = decode_usage(fields.get("usage"))
    if usage is None and "usage" in fields:
        return None
    extras = rest(fields, _READ_BEFORE if reason is None else _READ, NAME)
    origin = Origin(dialect=NAME, model=model, response_id=response_id)
    return Head(response_id, model, origin, usage, decode_finish(reason), reason, extras, None)


def _any(fields: Block) -> Head:
    known = decode_response({**fields, "content": []})
    refusal = next((part for part in known.message.parts if isinstance(part, Refusal)), None)
    choice = known.choices[0]
    return Head(known.id, known.model, known.message.origin, known.usage, known.finish,
                choice.finish_raw, FrozenDict(known.extras), refusal)  # fmt: skip
