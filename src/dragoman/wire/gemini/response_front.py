"""Fields that Gemini clients expect in responses, and the form of their streams."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

from dragoman.model.responses import Response
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import Front, FrontForm
from dragoman.wire.gemini.stream_chunks import Form
from dragoman.wire.gemini.stream_encoder import StreamEncoder


def complete(encoded: Encoded, _response: Response, front: Front) -> None:
    """Fill in the fields that a response lacks."""
    for key, value in (("responseId", front.id), ("modelVersion", front.request.model)):
        if value and not encoded.body.get(key):
            encoded.body[key] = value


def form_of(front: Front) -> Form:
    """The requested form of the stream: without `alt=sse`, an array (W120)."""
    if front.path is None:
        return "sse"
    return "sse" if parse_qs(urlsplit(front.path).query).get("alt") == ["sse"] else "array"


FRONT_FORM = FrontForm(
    id_prefix="",
    complete=complete,
    stream_encoder=lambda front: StreamEncoder(form=form_of(front)),
    stream_type=lambda front: (
        "text/event-stream" if form_of(front) == "sse" else "application/json"
    ),
    request_id_header=None,
    content=("candidates", b"[]"),
)
