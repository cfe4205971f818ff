"""Fields that Anthropic clients expect in responses: id, model, token counts, known blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.model import events
from dragoman.model.media import Media
from dragoman.model.parts import Thinking
from dragoman.model.responses import Response
from dragoman.model.usage import Usage
from dragoman.wire.anthropic.dialect import LAST_TEXT_FIELDS
from dragoman.wire.anthropic.response import decode_usage, encode_usage
from dragoman.wire.anthropic.stream_blocks import BLOCK_STOP, NO_MEDIA, BlockWriting
from dragoman.wire.anthropic.stream_encoder import StreamEncoder
from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import PREFIX
from dragoman.wire.front import AgentForm, Front, FrontForm
from dragoman.wire.losses import Loss

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
            Loss(f"choices[0].message.parts[{place}]", NO_MEDIA)
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

    def __init__(self, writing: BlockWriting | None = None) -> None:
        super().__init__(writing or BlockWriting(completed_block))

    def _head(self, body: dict[str, Any]) -> dict[str, Any]:
        return completed_message(super()._head(body))

    def _tail(self, delta: dict[str, Any], usage: dict[str, Any]) -> dict[str, Any]:
        whole = completed_delta(delta, self._begun or {})
        return super()._tail(whole, completed_usage(usage, is_late=True))

    def _part_start(self, event: events.PartStart) -> bytes:
        part = event.part
        if isinstance(part, Thinking) and part.signature is None and part.data is None:
            event = event.replace(part=part.replace(signature=""))
        return super()._part_start(event)


# Vercel's SDK up to 6, which names only this package, refuses an answer whose `citations` are null.
_OLD_AI_SDK = AgentForm(name="ai-sdk")
_CLAUDE_CODE = AgentForm(
    name="claude-code",
    state_fields=lambda _request: LAST_TEXT_FIELDS,
    stream_encoder=lambda _front: FrontStreamEncoder(TextStopsLast(completed_block)),
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


class TextStopsLast(BlockWriting):
    """Delays the stop of the last text until after the blocks with state that follow it."""

    __slots__ = ("_carriers", "_stop", "_text")

    def __init__(self, completed: Callable[[Any], Any] | None = None) -> None:
        super().__init__(completed)
        self._text: int | None = None  # index of the latest text block
        self._stop = b""  # the delayed stop
        self._carriers = b""  # the frames of blocks with state since then

    def send(self, type: str, **fields: Any) -> bytes:
        """Encode a frame, now that it is known what follows the text."""
        written, block = super().send(type, **fields), fields.get("content_block")
        is_stop = type == BLOCK_STOP
        if self._stop and (_is_carrier(block) or (is_stop and fields["index"] != self._text)):
            self._carriers += written
            return b""
        if is_stop and fields["index"] == self._text:
            self._stop = written
            return b""
        if isinstance(block, dict) and block.get("type") == "text":
            self._text = fields["index"]
        return self._released(is_last=type == "message_delta") + written

    def start_text(self) -> bytes:
        """Encode the start of an empty text."""
        self._text = self.index
        return self._released() + super().start_text()

    def _released(self, *, is_last: bool = False) -> bytes:
        """The delayed stop and the frames since then; in their own order unless it is the last."""
        stop, carriers = self._stop, self._carriers
        self._stop = self._carriers = b""
        return carriers + stop if is_last else stop + carriers


def _is_carrier(block: Any) -> bool:
    """Whether a block has nothing but state that a front sealed."""
    data = block.get("data") if isinstance(block, dict) else None
    is_hidden = isinstance(data, str) and block["type"] == "redacted_thinking"
    return is_hidden and str(data).startswith(PREFIX)
