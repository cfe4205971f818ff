"""Response bodies and events that no model produced: queued, cancelled, failed, warm-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import DragomanError
from dragoman.gateway.client_request import ClientRequest
from dragoman.gateway.endpoints import RESPONSES
from dragoman.model.jsontext import dumps
from dragoman.model.messages import make_message
from dragoman.model.responses import Choice, Response
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason, Usage
from dragoman.transport.answers import events_of
from dragoman.wire.dialect import dialect
from dragoman.wire.front import Front

_NAME = RESPONSES
_ENDS = {"completed": "response.completed", "failed": "response.failed"}


def blank(
    client_request: ClientRequest, id: str, says: Mapping[str, Any], status: str
) -> dict[str, Any]:
    """Returns the body of a response without output."""
    front = Front(_NAME, client_request.settings, response_id=id, response_fields=says)
    choice = Choice(0, make_message(Role.ASSISTANT), FinishReason.STOP)
    usage = Usage() if status == "completed" else None
    body = front.response(Response(choices=(choice,), usage=usage)).body
    if status != "completed":
        body = {**body, "completed_at": None, "usage": None}
    return {**body, "status": status, "output": []}


def failed(body: Mapping[str, Any], error: DragomanError) -> dict[str, Any]:
    """Returns the body of a response that failed before the model produced output."""
    _, encoded = dialect(_NAME).encode_error(error)
    problem = encoded["error"]
    code = problem["code"] or problem["type"]
    return {**body, "status": "failed", "error": {"code": code, "message": problem["message"]}}


def lifecycle_event(kind: str, body: Mapping[str, Any], number: int) -> bytes:
    """Returns the frame of an event that contains a whole response."""
    text = dumps({"type": kind, "sequence_number": number, "response": body})
    return b"event: " + kind.encode() + b"\ndata: " + text + b"\n\n"


def end_event(body: Mapping[str, Any], number: int) -> bytes:
    """Returns the final event of a finished response."""
    return lifecycle_event(_ENDS.get(str(body.get("status")), "response.incomplete"), body, number)


def frames_of(body: dict[str, Any]) -> bytes:
    """Returns the event stream of a response that was stored without one."""
    front = Front(_NAME, response_id=str(body.get("id")))
    writer = front.stream()
    response = dialect(_NAME).decode_response(body)
    written = writer.feed_all(list(events_of(response)))
    return written + writer.close()
