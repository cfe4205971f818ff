"""Decoder for one choice of a stream: deltas to part events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.events import ChoiceFinish, OpaqueEvent, PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCallDelta
from dragoman.wire.json_values import is_integer, is_list, is_object
from dragoman.wire.lane.templates import Growth
from dragoman.wire.openai_chat.dialect import NAME
from dragoman.wire.openai_chat.response import decode_finish
from dragoman.wire.openai_chat.stream_deltas import (
    THINKING,
    ThinkingDecoder,
    UnknownFields,
    decode_call_delta,
    decode_function_delta,
    is_empty,
)
from dragoman.wire.openai_chat.tables import (
    decode_annotations,
    decode_images,
    decode_parts,
    decode_speech_delta,
)
from dragoman.wire.openai_chat.tools import ARGUMENTS, EXECUTED_TOOLS, decode_server_tools
from dragoman.wire.overlay import extras_of, overlay_of, with_word
from dragoman.wire.rows import SILENT
from dragoman.wire.stream_decoding import Emit, PartEvents
from dragoman.wire.tolerance import plain_text

Resolve = Callable[[ToolCallDelta], ToolCallDelta]

# `message`, in addition to a delta, repeats everything so far (Perplexity).
_KNOWN = frozenset({"index", "message", "finish_reason", "logprobs", "obfuscation"})
_PART = frozenset({"type", "thinking"})


class ChoiceDecoder:
    """Tracks the started parts and the unknown fields of one choice."""

    def __init__(self, number: int, emit: Emit, resolve: Resolve) -> None:
        self._number = number
        self._emit = emit
        self._resolve = resolve
        self._parts = PartEvents(emit, number)
        self._content: tuple[int, AnyPart, bool] | None = None
        """The latest content part, and whether more plain text belongs to it."""
        self._repeated: dict[str, Any] | None = None
        self._text: int | None = None
        self._annotations: list[Any] = []
        self._refusal: int | None = None
        self._audio: int | None = None
        self._executed: dict[int, tuple[int, AnyPart, list[AnyPart]]] = {}
        """By the server's index: the index of the call's part, the call, and its result."""
        self._calls = 0
        self._is_empty_text = False
        self._unknown = UnknownFields()
        self._message = UnknownFields()
        self._thinking = ThinkingDecoder(self._parts, self._message)
        self._logprobs: dict[str, Any] | None = None
        self._has_new_logprobs = False
        self._finish_raw: str | None = None
        self._finish: ChoiceFinish | None = None
        self._settled: dict[str, Any] = {}

    @property
    def is_finished(self) -> bool:
        """Whether the finish reason has been received."""
        return self._finish is not None

    def take(self, wire: dict[str, Any]) -> Growth | None:
        """Decode a chunk of this choice; returns the growth of a part if nothing else happened."""
        delta = wire.pop("delta", None)
        is_repeated = wire == self._repeated
        if type(delta) is not dict:
            delta = wire.get("message")  # a server that sends the whole response in one chunk
            if is_object(delta):
                self._take_delta(delta)
        else:
            self._take_delta(delta)
            if is_repeated:
                return self._growth(delta)
        if not is_repeated:
            self._take_rest(wire)
        return None

    def _growth(self, delta: dict[str, Any]) -> Growth | None:
        """The growth caused by a delta; None if a similar delta would not do the same."""
        fields = [key for key, value in delta.items() if _may_grow(key, value)]
        if fields == ["content"]:
            index, _, is_plain = self._content or (0, None, False)
            text = delta["content"]
            if not is_plain or type(text) is not str:
                return None
            return Growth(PartDelta(index, text, None, None, (), self._number), ("content",))
        if fields == ["tool_calls"]:
            return self._call_growth(delta["tool_calls"])
        if fields and THINKING.issuperset(fields):
            return self._thinking.growth(delta, fields, self._number)
        return None

    def _call_growth(self, calls: Any) -> Growth | None:
        """The growth of one call's arguments, if the delta has nothing else."""
        is_one = is_list(calls) and len(calls) == 1
        piece = decode_call_delta(calls[0], self._number) if is_one else None
        if not isinstance(piece, ToolCallDelta) or not piece.arguments_delta:
            return None
        says_more = piece.id or piece.name or piece.signature or piece.extras
        if says_more or piece.index is None or self._resolve(piece) is not piece:
            return None
        return Growth(piece, ("tool_calls", 0, piece.kind, ARGUMENTS[piece.kind]))

    def _take_rest(self, wire: dict[str, Any]) -> None:
        for key, value in wire.items():
            if key not in _KNOWN:
                self._unknown.keep(key, value)
        raw, logprobs = wire.get("finish_reason"), wire.get("logprobs")
        if "logprobs" in wire:
            self._take_logprobs(logprobs)
        if isinstance(raw, str) and raw:
            self._finish_raw = raw
            self._stop()
            if self._finish is None:  # later changes are emitted once, at the end
                self._emit_finish()
        self._repeated = wire if raw is None and logprobs is None else None

    def end(self) -> None:
        """Emit what was received after the finish reason, such as the results of Azure's filter."""
        self._stop()
        if self._finish is not None:
            self._emit_finish()
        else:
            self.settle()

    def settle(self) -> None:
        """Emit what would have come with the finish reason, if a stream that fails has none."""
        choice, delta = self._unknown.filled(), self._message.filled()
        if self._logprobs is not None and any(self._logprobs.values()):
            choice["logprobs"] = self._logprobs
        held = {"index": self._number, "delta": delta, **choice}
        if self._finish is None and (choice or delta) and held != self._settled:
            event = OpaqueEvent(NAME, {"event": "message", "data": {"choices": [held]}})
            self._settled = event.payload["data"]["choices"][0]
            self._emit(event)

    def _stop(self) -> None:
        if self._annotations:
            self._message.add("annotations", self._annotations)
            self._annotations = []
        if self._executed:
            for place in list(self._executed):
                self._end_executed(place)
        if self._is_empty_text and not self._parts.count and not self._calls:
            self._add_text("", EMPTY)
        if self._parts.open:
            self._parts.stop_all()

    def _emit_finish(self) -> None:
        raw, known = self._finish_raw, self._finish
        finish, left, message = decode_finish(raw), self._unknown.extras(), self._message.extras()
        if finish is None or (
            known is not None
            and known.finish_raw == raw
            and known.extras is left
            and known.message_extras is message
            and not self._has_new_logprobs
        ):
            return  # nothing new, as nearly always at the end
        self._has_new_logprobs = False
        event = ChoiceFinish(finish, raw, self._number, self._logprobs, left, message)
        if event != known:
            self._finish = event
            self._emit(event)

    def _take_logprobs(self, logprobs: Any) -> None:
        if logprobs is None:
            self._unknown.keep("logprobs", None)
        elif not is_object(logprobs):
            self._unknown.keep("logprobs", logprobs)
        else:
            self._unknown.fill("logprobs")
            self._has_new_logprobs = True
            if self._logprobs is None:
                self._logprobs = {}
            for key, value in logprobs.items():
                known = self._logprobs.get(key)
                if is_list(known) and is_list(value):
                    known.extend(value)
                elif value is not None or key not in self._logprobs:
                    self._logprobs[key] = value

    # --- deltas

    def _take_delta(self, delta: dict[str, Any]) -> None:
        if not delta.keys().isdisjoint(THINKING):
            self._thinking.take(delta)
        for key, value in delta.items():
            take = _FIELDS.get(key)
            if take is None:
                if key not in THINKING:
                    self._message.keep(key, value)
            elif not value and is_empty(value):
                self._take_empty(key, value)
            elif take(self, value):
                self._message.fill(key)
            else:
                self._message.keep(key, value)

    def _take_empty(self, key: str, value: Any) -> None:
        """Empty content is common in first chunks: it counts only if there is nothing else."""
        if key == "content" and value == "":
            self._is_empty_text = True
            self._message.fill(key)
        elif key != "role":
            self._message.keep(key, value)

    def take_role(self, role: Any) -> bool:
        """The role must be assistant; any other value is kept in the extras."""
        return bool(role == "assistant")

    def take_content(self, content: Any) -> bool:
        """Decode a string or a list of parts; any other value becomes JSON text."""
        if isinstance(content, str):
            self._add_text(content, EMPTY)
            return True
        for item in content if is_list(content) else [plain_text(content)]:
            if isinstance(item, str):
                self._add_text(item, EMPTY)
                continue
            if is_object(item) and item.get("type") == "thinking" and item.get("thinking") == []:
                self._take_end_of_thinking(item)
                continue
            for part in decode_parts([item], SILENT):
                self._take_part(part)
        return True

    def _take_end_of_thinking(self, item: dict[str, Any]) -> None:
        extras = overlay_of(item, _PART, NAME)
        if extras and self._content is not None and isinstance(self._content[1], Thinking):
            self._parts.grow(self._content[0], extras=extras)

    def _take_part(self, part: AnyPart) -> None:
        if isinstance(part, Text) and part.cache is None:
            self._add_text(part.text, part.extras)
        elif isinstance(part, Thinking):  # Mistral sends it in many small lists
            if self._content is not None and isinstance(self._content[1], Thinking):
                self._parts.grow(self._content[0], text=part.text)
            else:
                self._content = (self._parts.start(part), part, False)
        else:
            self._content = (self._parts.whole(part), part, False)

    def _add_text(self, text: str, extras: Any) -> None:
        content = self._content
        if content is not None and type(content[1]) is Text and content[1].extras == extras:
            self._parts.grow(content[0], text)
            return
        part = Text(text, extras=extras)
        index = self._parts.start(part)
        self._content = (index, part, extras is EMPTY)
        if self._text is None:
            self._text = index
            if self._annotations:
                self._parts.grow(index, citations=decode_annotations(self._annotations))
                self._annotations = []

    def take_annotations(self, annotations: Any) -> bool:
        """Attach citations to the text that they refer to, or keep them until it comes."""
        citations = decode_annotations(annotations)
        if not citations:
            return False
        if self._text is None:
            self._annotations += annotations
        else:
            self._parts.grow(self._text, citations=citations)
        return True

    def take_refusal(self, refusal: Any) -> bool:
        """Decode a piece of a refusal."""
        if not isinstance(refusal, str):
            return False
        if self._refusal is None:
            self._refusal = self._parts.start(
                Refusal(refusal, extras=extras_of({}, NAME, ("refusal",)))
            )
        else:
            self._parts.grow(self._refusal, text=refusal)
        return True

    def take_audio(self, audio: Any) -> bool:
        """Decode a piece of audio or its transcript."""
        if not is_object(audio):
            return False
        growth = decode_speech_delta(audio)
        if self._audio is None:
            part = Audio(
                data=growth.get("data", ""),
                transcript=growth.get("text"),
                item_id=growth.get("id"),
                extras=growth.get("extras", EMPTY),
            )
            self._audio = self._parts.start(part)
        else:
            growth.pop("id", None)
            self._parts.grow(self._audio, **growth)
        return True

    def take_images(self, images: Any) -> bool:
        """Decode images, each of which is complete."""
        shown = decode_images(images, SILENT)
        for part in shown:
            self._parts.whole(part)
        return bool(shown)

    def take_executed(self, executed: Any) -> bool:
        """Decode server-run tools: each is sent when called, and again with its result."""
        if not is_list(executed) or not decode_server_tools(executed, None):
            return False
        for item in executed:
            call, *outcome = decode_server_tools([item], None)
            place = item.get("index")
            if not is_integer(place):
                place = -1 - self._parts.count  # a unique index
            known = self._executed.get(place)
            started = self._parts.start(call) if known is None else known[0]
            self._executed[place] = (started, call, outcome)
            if "output" in item:
                self._end_executed(place)
        return True

    def _end_executed(self, place: int) -> None:
        started, call, outcome = self._executed.pop(place)
        self._parts.stop(started, call)
        for part in outcome:
            self._parts.whole(part)

    def take_calls(self, calls: Any) -> bool:
        """Decode pieces of tool calls; malformed ones become opaque parts."""
        if not is_list(calls):
            return False
        for wire in calls:
            piece = decode_call_delta(wire, self._number)
            if isinstance(piece, ToolCallDelta):
                self._call(piece, ("tool_calls",))
            else:
                self._parts.whole(piece)
        return True

    def take_function_call(self, wire: Any) -> bool:
        """Decode a piece of a legacy `function_call`."""
        piece = decode_function_delta(wire, self._number)
        if piece is None:
            return False
        self._call(piece, ())
        return True

    def _call(self, piece: ToolCallDelta, words: tuple[str, ...]) -> None:
        piece = self._resolve(piece)
        number = piece.index or 0
        if number >= self._calls:
            self._calls = number + 1
            if piece.id is None:  # without the word it would be taken for a legacy call
                for word in words:
                    piece = piece.replace(extras=with_word(piece.extras, NAME, word))
        self._emit(piece)


def _may_grow(key: str, value: Any) -> bool:
    """Whether a repeated field adds content."""
    if type(value) is str and key not in THINKING and (key == "role" or key not in _FIELDS):
        return False
    return not is_empty(value)


_FIELDS: dict[str, Callable[[ChoiceDecoder, Any], bool]] = {
    "role": ChoiceDecoder.take_role,
    "content": ChoiceDecoder.take_content,
    "annotations": ChoiceDecoder.take_annotations,
    "refusal": ChoiceDecoder.take_refusal,
    "audio": ChoiceDecoder.take_audio,
    "images": ChoiceDecoder.take_images,
    EXECUTED_TOOLS: ChoiceDecoder.take_executed,
    "tool_calls": ChoiceDecoder.take_calls,
    "function_call": ChoiceDecoder.take_function_call,
}
