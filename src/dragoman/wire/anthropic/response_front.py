"""Fields that Anthropic clients expect in responses: id, model, token counts, known blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta
from dragoman.model.jsontext import loads
from dragoman.model.media import Media
from dragoman.model.parts import Text, Thinking
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.wire.anthropic.dialect import LAST_TEXT_FIELDS, is_own
from dragoman.wire.anthropic.response import decode_usage, encode_usage
from dragoman.wire.anthropic.stream_encoder import StreamEncoder
from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import PREFIX
from dragoman.wire.front import AgentForm, Front, FrontForm
from dragoman.wire.lane.flows import Delta, Flow, FlowingEncoder, general_path, inner_flow
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.streams import StreamEncoder as AnyEncoder

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
                self._lose(f"choices[0].message.parts[{self._skip()}]", _NO_MEDIA)
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


# --- fields that the newest API always sends and its specification requires

_DIRECT = {"caller": {"type": "direct"}}
_OF_BLOCKS: dict[str, dict[str, Any]] = {
    "text": {"citations": None},
    "thinking": {"signature": ""},
    "tool_use": _DIRECT,
    "server_tool_use": _DIRECT,
    "web_search_tool_result": _DIRECT,
    "web_fetch_tool_result": _DIRECT,
}
_OF_DELTAS: dict[str, Any] = {"stop_details": None, "container": None}
_OF_MESSAGES: dict[str, Any] = {"stop_reason": None, "stop_sequence": None, **_OF_DELTAS}
_COUNTS: dict[str, Any] = {
    "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens_details": None,
    "server_tool_use": None,
}  # fmt: skip
_OF_USAGE: dict[str, Any] = {
    **_COUNTS, "cache_creation": None, "inference_geo": None, "service_tier": None,
}  # fmt: skip
_TOOL_COUNTS = {"web_fetch_requests": 0, "web_search_requests": 0}


def completed_block(block: Any) -> Any:
    """A content block with all of its fields."""
    kind = block.get("type") if isinstance(block, Mapping) else None
    return _with(block, _OF_BLOCKS[kind]) if isinstance(kind, str) and kind in _OF_BLOCKS else block


def completed_message(body: dict[str, Any]) -> dict[str, Any]:
    """A message with all of its fields but those of its blocks."""
    return {**_with(body, _OF_MESSAGES), "usage": completed_usage(body["usage"])}


def completed_delta(delta: dict[str, Any], begun: Mapping[str, Any]) -> dict[str, Any]:
    """The delta that ends a message, with all of its fields; others are as the message began."""
    return {**delta, **{name: delta.get(name, begun.get(name)) for name in _OF_DELTAS}}


def completed_usage(usage: Mapping[str, Any], *, is_late: bool = False) -> dict[str, Any]:
    """Token counts with all of their fields; at the end of a stream (`is_late`) there are fewer."""
    made = _with(usage, _COUNTS if is_late else _OF_USAGE)
    counts = made["server_tool_use"]
    if isinstance(counts, Mapping):
        made["server_tool_use"] = {**_TOOL_COUNTS, **counts}
    return made


def _with(wire: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The object, and these fields if it lacks them."""
    return {**wire, **{name: value for name, value in fields.items() if name not in wire}}


# --- streams whose text stops last: for Claude Code

_START, _STOP, _END = "content_block_start", "content_block_stop", "message_delta"
_EITHER = b"event: content_block_st"
_FRAME_END = b"\n\n"


class TextStopsLast(FlowingEncoder):
    """Delays the stop of the last text until after the blocks with state that follow it."""

    def __init__(self, encoder: AnyEncoder) -> None:
        self._encoder = encoder
        self._write = general_path(encoder)
        self._text: int | None = None  # index of the latest text block
        self._stop = b""  # the delayed stop
        self._carriers: list[bytes] = []  # the frames of blocks with state since then

    @property
    def losses(self) -> Sequence[Loss]:
        """What could not be expressed so far."""
        return self._encoder.losses

    @property
    def repairs(self) -> Sequence[Repair]:
        """What was repaired so far."""
        return self._encoder.repairs

    def write(self, event: Event) -> bytes:
        """The bytes to send for an event, in the general way."""
        return self._ordered(self._write(event))

    def flow_after(self, event: Delta) -> Flow | None:
        """How to write deltas like the plain one that was just written."""
        return inner_flow(self._encoder, event)

    def _close(self) -> bytes:
        return self._ordered(self._encoder.close()) + self._released()

    def _ordered(self, written: bytes) -> bytes:
        if not written or not (self._stop or _EITHER in written):
            return written
        frames = written.split(_FRAME_END)[:-1]
        return b"".join([self._frame(frame + _FRAME_END) for frame in frames])

    def _frame(self, frame: bytes) -> bytes:
        """The bytes to send for a frame, now that it is known what follows the text."""
        head, _, data = frame.partition(b"\ndata: ")
        name = head.removeprefix(b"event: ").decode()
        event: Any = loads(data) if name in (_START, _STOP) else {}
        is_carrier = name == _START and _is_carrier(event["content_block"])
        if self._stop and (is_carrier or (name == _STOP and event["index"] != self._text)):
            self._carriers.append(frame)
            return b""
        if name == _STOP and event["index"] == self._text:
            self._stop = frame
            return b""
        if name == _START and event["content_block"]["type"] == "text":
            self._text = event["index"]
        return self._released(is_last=name == _END) + frame

    def _released(self, *, is_last: bool = False) -> bytes:
        """The delayed stop and the frames since then; in their own order unless it is the last."""
        stop, self._stop = self._stop, b""
        carriers, self._carriers = b"".join(self._carriers), []
        return carriers + stop if is_last else stop + carriers


def _is_carrier(block: dict[str, Any]) -> bool:
    """Whether a block has nothing but state that a front sealed."""
    data = block.get("data")
    is_hidden = block.get("type") == "redacted_thinking" and isinstance(data, str)
    return is_hidden and str(data).startswith(PREFIX)
