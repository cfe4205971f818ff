"""One candidate of a stream, read: its parts become the events of parts that start and grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.events import ChoiceFinish, Event, PartDelta, PartStart, PartStop
from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.media import Audio
from dragoman.model.parts import Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.contents import decode_content
from dragoman.wire.gemini.finish import decode_finish, has_calls
from dragoman.wire.gemini.parts import decode_part
from dragoman.wire.gemini.response import CANDIDATE_NAMES, decode_candidate
from dragoman.wire.gemini.stream_calls import GrowingCall, call_in, head_of, is_piece
from dragoman.wire.gemini.stream_metadata import Metadata
from dragoman.wire.gemini.trace import Trace, is_array, is_object
from dragoman.wire.tolerance import plain_text

_ASSISTANT = Role.ASSISTANT
_MODEL = {"role": "model"}
_PLAIN = 2  # fields: role and parts
_PLAIN_END = {"finishReason", "index"}
# What a choice is made of beside those; a candidate's other fields ride along as they are.
_INTRICATE = frozenset({*CANDIDATE_NAMES, *CANDIDATE_NAMES.values()}) - _PLAIN_END
_TEXT = Text("")
_THOUGHT = 2  # fields: text and thought
_PCM = ("audio/l16", "audio/pcm")  # sound without a frame around it: pieces make a whole


class CandidateDecoder:
    """Remembers what of a candidate is still growing.

    A text is never joined with a neighbour that is signed, of another kind, or has other fields
    (W85). An empty text without a signature says nothing and is no part.
    """

    def __init__(self, number: int, calls: CallIds, emit: Callable[[Event], None]) -> None:
        self._number = number
        self.calls = calls
        calls.at(number)
        self._emit = emit
        self._metadata = Metadata()
        self._content: dict[str, Any] | None = None  # but for its parts
        self._parts: list[AnyPart] = []  # as they began, texts without their words
        self._open: Text | Thinking | Audio | None = None
        self._call: GrowingCall | None = None
        self._has_grown = False
        self.is_finished = False

    def take(self, wire: dict[str, Any]) -> None:
        """Read what one chunk says of the candidate."""
        self._has_grown = False
        if (content := wire.get("content")) is not None:
            self._take_content(content)
        if self._metadata.learn(wire):
            self.is_finished = True
        elif self._has_grown:
            self.is_finished = False  # the model ran code and went on

    def end(self) -> None:
        """The stream has ended: only now it is known that nothing comes after the finish."""
        finish = self._plain_finish() or self._cited_finish()
        if not self.is_finished:  # what broke off is not stopped
            self._settle_call()
            return
        self._stop()
        if finish is not None:
            self._emit(finish)

    # --- content

    def _take_content(self, content: Any) -> None:
        if type(content) is not dict:
            content = {"parts": content}
        known = self._content = {} if self._content is None else self._content
        parts = content.get("parts")
        if type(parts) is list and len(content) == _PLAIN and content.get("role") == "model":
            known["role"] = "model"  # most say no more
        else:
            for key, value in content.items():
                if key != "parts" and (value is not None or key not in known):
                    known[key] = value
            parts = self._irregular_parts(parts)
        for part in parts:
            # Most parts are this.
            if type(part) is dict and len(part) == 1 and type(text := part.get("text")) is str:
                self._grow_text(text)
            else:
                self._take_part(part)

    def _irregular_parts(self, parts: Any) -> list[Any]:
        if parts is None:
            return []
        if is_array(parts):
            return parts
        return [parts if is_object(parts) else {"text": plain_text(parts)}]

    def _take_part(self, wire: Any) -> None:
        if type(wire) is str:
            self._grow_text(wire)
            return
        if type(wire) is dict and type(text := wire.get("text")) is str:
            if len(wire) == _THOUGHT and wire.get("thought") is True:
                self._grow(Thinking(text, None, "summary"))
                return
        elif (call := call_in(wire)) is not None:
            if self._call is not None and "name" not in call:
                self._grow_call(self._call, call)
                return
            if is_piece(call) and self._begin_call(wire, call):
                return
            if not call and self._parts and isinstance(self._parts[-1], ToolCall):
                return  # the end of a call that was whole already
        self._grow(decode_part(wire, self.calls, None))

    def _grow_text(self, text: str) -> None:
        grown = self._open
        if not text:
            return
        if type(grown) is Text and grown.extras is EMPTY:
            self._has_grown = True
            self._emit(PartDelta(len(self._parts) - 1, text, choice=self._number))
        else:
            self._open_with(Text(text))

    def _grow(self, part: AnyPart) -> None:
        """A part, or more of the one that is open."""
        grown = self._open
        if isinstance(part, (Text, Thinking)) and part.signature is None:
            if grown is not None and type(grown) is type(part) and grown.extras == part.extras:
                self._more(PartDelta(self._index, part.text or None, choice=self._number))
            elif part.text or part.extras:
                self._open_with(part)
        elif isinstance(part, Audio) and _is_raw(part):
            if isinstance(grown, Audio) and grown.mime == part.mime:
                self._more(PartDelta(self._index, data=part.data, choice=self._number))
            else:
                self._open_with(part)
        else:
            self._start(part)
            self._emit(PartStop(self._index, None, self._number))

    @property
    def _index(self) -> int:
        """Of the part that began last."""
        return len(self._parts) - 1

    def _more(self, delta: PartDelta) -> None:
        if delta.text or delta.data:
            self._has_grown = True
            self._emit(delta)

    def _open_with(self, part: Text | Thinking | Audio) -> None:
        self._start(part)
        self._open = part

    def _start(self, part: AnyPart) -> None:
        self._stop()
        self._has_grown = True
        self._parts.append(_TEXT if isinstance(part, Text) else part)
        self._emit(PartStart(self._index, part, self._number))

    def _stop(self) -> None:
        """Nothing is added to the last part any more."""
        if self._settle_call() or self._open is not None:
            self._open = None
            self._emit(PartStop(self._index, None, self._number))

    # --- calls that come in pieces

    def _begin_call(self, wire: dict[str, Any], call: dict[str, Any]) -> bool:
        part = decode_part(head_of(wire), self.calls, None)
        if not isinstance(part, ToolCall):
            return False
        # Until it is whole, its arguments can't be taken for any.
        self._start(part.replace_unchecked(raw="{", input=None))
        self._call = GrowingCall(self._index)
        self._grow_call(self._call, call)
        return True

    def _settle_call(self) -> bool:
        """Tell the arguments of the call that was growing, if there was one."""
        call, self._call = self._call, None
        if call is not None and (rest := call.rest()):
            self._emit(PartDelta(call.index, rest, choice=self._number))
        return call is not None

    def _grow_call(self, growing: GrowingCall, call: dict[str, Any]) -> None:
        self._has_grown = True
        growing.grow(call)
        if growing.is_whole:
            self._stop()

    # --- the end

    def _plain_finish(self) -> ChoiceFinish | None:
        """That of most candidates, which have no sources; None where there is more to it.

        `_cited_finish` comes to the same, by way of a whole message and its choice.
        """
        wire = self._metadata.fields
        word, index = wire.get("finishReason"), wire.get("index", self._number)
        is_usual = type(word) is str and type(index) is int and index == self._number
        if not is_usual or self._content != _MODEL or not _INTRICATE.isdisjoint(wire):
            return None
        finish, _ = decode_finish(word, has_calls(self._parts))
        if finish is None:
            return None
        extras = EMPTY if wire.keys() == _PLAIN_END else self._left_over(wire)
        return ChoiceFinish(finish, word, self._number, None, extras)

    def _left_over(self, wire: dict[str, Any]) -> FrozenDict:
        trace = Trace()
        trace.fields = {key: value for key, value in wire.items() if key not in _PLAIN_END}
        if "index" not in wire:
            trace.absent("index", self._number)
        return trace.extras()

    def _cited_finish(self) -> ChoiceFinish | None:
        """As the plain form would have it; sources of the texts are told on the way."""
        said = (_ASSISTANT, tuple(self._parts), self._content_extras())
        wire = self._metadata.fields
        if self._content is not None:
            wire = {**wire, "content": self._content}
        choice = decode_candidate(wire, self._number, said, None)
        message = choice.message
        for index, part in enumerate(message.parts):
            if isinstance(part, Text) and part.citations:
                self._emit(PartDelta(index, citations=part.citations, choice=self._number))
        if choice.finish is None:
            return None
        finish, word = choice.finish, choice.finish_raw
        return ChoiceFinish(
            finish, word, self._number, choice.logprobs, choice.extras, message.extras
        )

    def _content_extras(self) -> FrozenDict:
        if self._content is None or self._content == _MODEL:
            return EMPTY
        return decode_content(self._content, CallIds(), _ASSISTANT, None)[2]


def _is_raw(part: Audio) -> bool:
    is_bare = part.signature is None and not part.extras and bool(part.data)
    return is_bare and part.mime is not None and part.mime.lower().startswith(_PCM)
