"""Fields that Anthropic clients expect in responses: id, model, token counts, known blocks."""

from __future__ import annotations

from typing import Any

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.media import Media
from dragoman.model.parts import Text, Thinking
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.wire.anthropic.dialect import LAST_TEXT_FIELDS, is_own
from dragoman.wire.anthropic.response import decode_usage, encode_usage
from dragoman.wire.anthropic.response_fields import (
    completed_block,
    completed_delta,
    completed_message,
    completed_usage,
)
from dragoman.wire.anthropic.stream_encoder import StreamEncoder
from dragoman.wire.anthropic.stream_stops import TextStopsLast
from dragoman.wire.encoded import Encoded
from dragoman.wire.front import AgentForm, Front, FrontForm
from dragoman.wire.losses import Loss

_NO_MEDIA = "responses can't contain images or files"
_MEDIA = frozenset({"image", "document"})


def complete(encoded: Encoded, response: Response, front: Front) -> None:
    """Fill in missing fields, and remove blocks that responses can't contain."""
    body = encoded.body
    stamp = {"id": front.id, "type": "message", "role": "assistant",
             "model": front.request.model or ""}  # fmt: skip
    for key, value in stamp.items():
        if not body.get(key):
            body[key] = value
    if decode_usage(body.get("usage")) is None:
        body["usage"] = encode_usage(Usage())
    body |= completed_message(body)
    is_own = front.is_own_response(response)
    body["content"] = [
        completed_block(block) for block in body["content"] if is_own or not _is_media(block)
    ]
    if front.agent is _OLD_AI_SDK:
        body["content"] = [_without_null_citations(block) for block in body["content"]]
    if not is_own and response.choices:
        encoded.losses += tuple(
            Loss(f"choices[0].message.parts[{place}]", _NO_MEDIA)
            for place, part in enumerate(response.choices[0].message.parts)
            if isinstance(part, Media)
        )


def _without_null_citations(block: Any) -> Any:
    is_null = isinstance(block, dict) and block.get("citations", ()) is None
    return {k: v for k, v in block.items() if k != "citations"} if is_null else block


def _is_media(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") in _MEDIA


class FrontStreamEncoder(StreamEncoder):
    """Writes a stream with only blocks that clients know, and with all their fields."""

    def __init__(self) -> None:
        super().__init__(completed_block)
        self._left_out: set[int] = set()

    def _head(self, body: dict[str, Any]) -> dict[str, Any]:
        return completed_message(super()._head(body))

    def _tail(self, delta: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        whole = completed_delta(delta, self._begun or {})
        return super()._tail(whole, completed_usage(usage, is_late=True))

    def _is_left_out(self, index: int, part: AnyPart) -> bool:
        """Whether a part can't be in a response."""
        # As in a whole response, the answer's origin decides, not that of its part.
        if isinstance(part, Media) and not is_own(self._start.origin):
            if index not in self._left_out:
                self._left_out.add(index)
                self._lose(f"choices[0].message.parts[{self._queue.skip()}]", _NO_MEDIA)
            return True
        return False

    def _report_late(self, event: events.Event) -> None:
        is_out = isinstance(event, (PartDelta, events.PartStop)) and event.index in self._left_out
        if isinstance(event, (events.PartStart, events.PartStop)) and not event.choice:
            part = event.part
            is_out = (part is not None and self._is_left_out(event.index, part)) or is_out
        if not is_out:
            super()._report_late(event)

    def _part_delta(self, event: PartDelta) -> bytes:
        return b"" if event.index in self._left_out else super()._part_delta(event)

    def _part_stop(self, event: events.PartStop) -> bytes:
        part, index = event.part, event.index
        if (part is not None and self._is_left_out(index, part)) or index in self._left_out:
            return b""
        return super()._part_stop(event)

    def _part_start(self, event: events.PartStart) -> bytes:
        part = event.part
        if type(part) is Text:
            return super()._part_start(event)
        if self._is_left_out(event.index, part):
            return b""
        if isinstance(part, Thinking) and part.signature is None and part.data is None:
            event = event.replace(part=part.replace(signature=""))
        return super()._part_start(event)


# Vercel's SDK up to 6, which names only this package, refuses an answer whose `citations` are null.
_OLD_AI_SDK = AgentForm(name="ai-sdk")
_CLAUDE_CODE = AgentForm(
    name="claude-code",
    state_fields=lambda _request: LAST_TEXT_FIELDS,
    stream_encoder=lambda _front: TextStopsLast(FrontStreamEncoder()),
)
FRONT_FORM = FrontForm(
    id_prefix="msg_",
    complete=complete,
    stream_encoder=lambda _front: FrontStreamEncoder(),
    request_id_header="request-id",
    content=("content", b"[]"),
    request_headers=("anthropic-beta",),
    agents={
        b"claude-cli/": _CLAUDE_CODE,
        **{b"ai-sdk/provider-utils/%d." % version: _OLD_AI_SDK for version in (2, 3, 4)},
    },
)
