"""Answers, and errors in their place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.model.events import ResponseStart
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Origin
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.wire import json_values, overlay
from dragoman.wire.encoded import Encoded
from dragoman.wire.error_reporting import reported
from dragoman_courier.content import Report, decode_piece, encode_piece
from dragoman_courier.description import NAME

_ENDS = {
    "done": FinishReason.STOP,
    "limit": FinishReason.LENGTH,
    "calls": FinishReason.TOOL_CALLS,
    "withheld": FinishReason.CONTENT_FILTER,
}
_WORDS = {reason: word for word, reason in _ENDS.items()}


def decode_response(wire: Mapping[str, Any]) -> Response:
    """The response in a body."""
    turn = json_values.want(wire, "turn", dict, NAME, "$")
    pieces = json_values.want(turn, "pieces", list, NAME, "$.turn")
    made_by = wire.get("model")
    model = made_by if isinstance(made_by, str) else None
    ended = wire.get("ended")
    finish, usage = decode_finish(ended), decode_usage(wire.get("spent"))
    parts = tuple(decode_piece(piece, f"turn.pieces[{i}]") for i, piece in enumerate(pieces))
    message = make_message(
        Role.ASSISTANT,
        parts,
        origin=Origin(dialect=NAME, model=model),
        finish=finish,
        usage=usage,
    )
    raw = ended if isinstance(ended, str) else None
    response = Response(
        id=wire["id"] if isinstance(wire.get("id"), str) else None,
        choices=(Choice(0, message, finish, raw),),
        usage=usage,
        model=model,
        created_at=wire["at"] if type(wire.get("at")) is float else None,
    )
    return response.replace(
        extras=overlay.overlay_of(wire, (), NAME, encode_response(response).body)
    )


def encode_response(response: Response) -> Encoded:
    """The body to answer with for a response."""
    report = Report()
    said = response.choices[0] if response.choices else None
    body: dict[str, Any] = encode_head(response)
    message = make_message(Role.ASSISTANT, ()) if said is None else said.message
    body["turn"] = _encode_turn(message, report)
    if said is not None:
        body["ended"] = encode_finish(said.finish, said.finish_raw, report)
        if said.logprobs is not None:
            report.lose("choices[0].logprobs", "there are no probabilities")
    if response.usage is not None:
        body["spent"] = encode_usage(response.usage)
    for index in range(1, len(response.choices)):
        report.lose(f"choices[{index}]", "there is one answer only")
    return Encoded(
        overlay.with_overlay(body, response.extras, NAME),
        losses=tuple(report.losses),
        repairs=tuple(report.repairs),
    )


def encode_head(known: Response | ResponseStart) -> dict[str, Any]:
    """What an answer or a stream begins with, as far as it is known."""
    head = {"id": known.id, "model": known.model, "at": known.created_at}
    return {key: value for key, value in head.items() if value is not None}


def _encode_turn(message: Message, report: Report) -> dict[str, Any]:
    written = (
        encode_piece(part, f"choices[0].message.parts[{i}]", report)
        for i, part in enumerate(message.parts)
    )
    return {"from": "agent", "pieces": [piece for piece in written if piece is not None]}


# --- why it ended, and what it cost


def decode_finish(word: object) -> FinishReason | None:
    """The reason behind a word; None where there is none."""
    return _ENDS.get(word, FinishReason.OTHER) if isinstance(word, str) else None


def encode_finish(finish: FinishReason | None, raw: str | None, report: Report) -> str:
    """The word for a reason: the wire's own, while it means the same."""
    if raw is not None and decode_finish(raw) is finish:
        return raw
    if finish is not None and finish not in _WORDS:
        report.lose("choices[0].finish", "there is no word for this reason")
    return _WORDS.get(finish, "done") if finish else "done"


def decode_usage(wire: Any) -> Usage | None:
    """The token counts; None where there are none."""
    told, written = (wire.get("in"), wire.get("out")) if isinstance(wire, dict) else (None, None)
    if type(told) is not int or type(written) is not int or min(told, written) < 0:
        return None
    return Usage(input=told, output=written)


def encode_usage(usage: Usage) -> dict[str, int]:
    """The token counts: two of them."""
    return {"in": usage.total_input, "out": usage.total_output}


# --- errors


def encode_error(error: DragomanError) -> tuple[int, dict[str, Any]]:
    """The status and the body to answer with for an error."""
    told = reported(error)
    return told.status or 500, {"error": {"message": str(told)}}
