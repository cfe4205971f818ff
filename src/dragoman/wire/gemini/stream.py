"""Stream decoder: chunks to canonical events.

Each chunk is a response whose parts follow those of the chunks before. There is no end marker: a
stream is complete if it ended after every candidate had a finish reason, or the prompt was
blocked. In the form of an array it also needs its closing bracket. A candidate may continue after
its finish reason (recorded with code execution), and then needs another one, unless there is
nothing but text.
"""

from __future__ import annotations

from typing import Any, ClassVar

from dragoman.errors import InvalidInputError, WireError
from dragoman.model import events
from dragoman.model.content import AnyPart
from dragoman.model.derived_ids import UNKNOWN_RESPONSE, response_identity
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import loads
from dragoman.model.media import Audio
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall
from dragoman.wire.call_ids import CallIds
from dragoman.wire.gemini.dialect import NAME
from dragoman.wire.gemini.response import (
    decode_blocked,
    decode_candidate,
    decode_head,
    decode_usage,
    origin_of,
)
from dragoman.wire.gemini.response_errors import decode_stream_error
from dragoman.wire.gemini.stream_chunks import (
    ChunkReader,
    GrowingCall,
    Metadata,
    call_head,
    call_in,
    is_piece,
)
from dragoman.wire.gemini.tables import decode_part
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.lane.templates import Growth, Noises
from dragoman.wire.reading import Reading
from dragoman.wire.stream_decoding import Emit, FrameDecoder, PartEvents, Passing
from dragoman.wire.tolerance import plain_text

_TEXT_PLACE = ("candidates", 0, "content", "parts", 0)
_NAMING = frozenset({"responseId", "modelVersion", "response_id", "model_version"})


class StreamDecoder(FrameDecoder[str | bytes]):
    """Decodes chunks, with a separate decoder for each candidate.

    `response` equals the non-streamed response: texts are joined, and repeated fields occur once.
    Parts are emitted as they come. Usage, finish reason and citations, which every chunk may still
    change, are emitted when the stream is closed.
    """

    _dialect = NAME
    PASSING = Passing(
        (rb'"finish_?[rR]eason"', rb'"function_?[cC]all"', rb'"prompt_?[fF]eedback"', b'"error"'),
        rb'"usage_?[mM]etadata"',
    )
    _noise: ClassVar[Noises] = {}

    def __init__(self) -> None:
        self._chunks = ChunkReader()
        super().__init__(self._chunks)
        self._candidates: dict[int, CandidateDecoder] = {}
        self._identity = UNKNOWN_RESPONSE
        self._head: dict[str, Any] = {}  # fields other than candidates and usage
        self._repeated: dict[str, Any] | None = None
        self._has_started = self._has_news = self._has_failed = False
        self._usage: Any = None  # the latest

    def _end(self) -> None:
        if self._has_news:
            self._start()
        self._settle_usage()
        for candidate in self._candidates.values():
            candidate.end()
        if not self._candidates:
            self._emit_blocked()
        if self._is_done():
            self._emit(events.ResponseEnd())

    def _emit_blocked(self) -> None:
        """Emit a blocked prompt, if there are no candidates and the response says so (W88)."""
        blocked = decode_blocked(self._head, Origin(dialect=NAME))
        if blocked is not None and blocked.finish is not None:
            self._emit(
                events.ChoiceFinish(blocked.finish, blocked.finish_raw, extras=blocked.extras)
            )

    def _is_done(self) -> bool:
        if self._is_closed or self._has_failed or not self._chunks.is_closed:
            return False
        if not self._candidates:
            return self._folded.response.finish is not None  # then the prompt was blocked
        return all(candidate.is_finished for candidate in self._candidates.values())

    # --- chunks

    def _take(self, frame: str | bytes) -> None:
        chunk = _parsed(frame)
        if type(chunk) is dict:
            self._take_chunk(chunk)
        else:
            for item in chunk if is_list(chunk) else [chunk]:
                if not is_object(item):
                    msg = "a chunk of the stream is not a JSON object"
                    raise WireError(msg, dialect=NAME, path="$")
                self._take_chunk(item)

    def _take_chunk(self, chunk: dict[str, Any]) -> None:
        if chunk.get("error") is not None:
            self._take_error(chunk)
            return
        candidates = chunk.pop("candidates", None)
        usage = chunk.pop("usageMetadata", None)
        if usage is None and (usage := chunk.get("usage_metadata")) is not None:
            chunk["usage_metadata"] = {}  # records the spelling
        is_repeated = chunk == self._repeated
        if not is_repeated:
            self._repeated = chunk
            self._take_head(chunk)
        if usage is not None:
            self._usage = usage
        if is_list(candidates):
            for position, wire in enumerate(candidates):
                self._take_candidate(wire, position)
            if is_repeated and len(candidates) == 1:
                self._growth = self._grown(candidates[0])
        elif candidates is not None:
            self._emit(events.OpaqueEvent(NAME, {"candidates": candidates}))

    def _take_error(self, chunk: dict[str, Any]) -> None:
        if self._has_news:
            self._start()
        self._settle_usage()
        for candidate in self._candidates.values():
            candidate.settle()
        self._has_failed = True
        self._emit(decode_stream_error(chunk))

    def _grown(self, wire: Any) -> Growth | None:
        """The growth caused by a chunk, if its only candidate has nothing else."""
        index = wire.get("index", 0) if type(wire) is dict else None
        candidate = self._candidates.get(index) if type(index) is int else None
        delta = None if candidate is None else candidate.grown(wire)
        if delta is None:
            return None
        return Growth(delta, (*_TEXT_PLACE, "text"), counts="usageMetadata")

    def _take_counts(self, counts: bytes) -> None:
        self._usage = bytes(counts)

    def _settle_usage(self) -> None:
        """Emit the usage: every chunk repeats it, and only the last one counts (W98)."""
        usage, self._usage = self._usage, None
        usage = decode_usage(loads(usage) if type(usage) is bytes else usage)
        if usage is not None:
            self._emit(events.UsageUpdate(usage))

    def _take_head(self, chunk: dict[str, Any]) -> None:
        """Read the fields that most chunks repeat; emitted when named, and at the end."""
        before = len(_NAMING & self._head.keys()) if self._has_started else -1
        self._head.update({key: value for key, value in chunk.items() if value is not None})
        self._has_news = True
        if before < 0 or len(_NAMING & self._head.keys()) > before:
            self._start()

    def _start(self) -> None:
        self._has_started, self._has_news = True, False
        start = _decode_start(self._head)
        self._emit(start)
        self._identity = response_identity(start.id, start.created_at, start.model)
        for candidate in self._candidates.values():
            candidate.reading.calls.identity = self._identity

    def _take_candidate(self, wire: Any, position: int) -> None:
        if type(wire) is not dict:
            self._emit(events.OpaqueEvent(NAME, {"candidates": [wire]}))
            return
        index = wire.get("index")
        number = index if type(index) is int else position
        candidate = self._candidates.get(number)
        if candidate is None:
            calls = CallIds(self._identity)
            candidate = CandidateDecoder(number, calls, self._emit)
            self._candidates[number] = candidate
        candidate.take(wire)


def _decode_start(wire: dict[str, Any]) -> events.ResponseStart:
    head = decode_head(wire, {"usageMetadata"})
    return events.ResponseStart(
        id=head.id,
        model=head.model,
        created_at=head.created_at,
        origin=origin_of(head),
        extras=head.extras,
    )


def _parsed(raw: str | bytes) -> Any:
    """Parse a frame: a chunk, an error in a list, or several if a proxy removed blank lines."""
    try:
        return loads(raw)
    except InvalidInputError:
        if isinstance(raw, bytes) or "\n" not in raw:
            raise
    return [loads(line) for line in raw.split("\n")]


# --- one candidate

_ASSISTANT = Role.ASSISTANT
_MODEL = {"role": "model"}
_CITED = frozenset({"citationMetadata", "citation_metadata"})  # emitted with their texts
_PLAIN = 2  # fields: role and parts
_PLAIN_CONTENT = frozenset({"role", "parts"})
_PLAIN_FIELDS = frozenset({"content", "index"})
_TEXT = Text("")
_PCM = ("audio/l16", "audio/pcm")  # raw audio, whose pieces can be concatenated


class CandidateDecoder:
    """Tracks the growing parts of a candidate.

    A text is never joined with a neighbour that is signed, of another kind, or has other fields
    (W85). An empty text without a signature is not a part.
    """

    def __init__(self, number: int, calls: CallIds, emit: Emit) -> None:
        self._number = number
        calls.at(number)
        self.reading = Reading(None, calls)
        self._emit = emit
        self._events = PartEvents(emit, number)
        self._metadata = Metadata()
        self._content: dict[str, Any] | None = None  # without its parts
        self._parts: list[AnyPart] = []  # in their initial state, texts empty
        self._open: Text | Thinking | Audio | None = None
        self._call: GrowingCall | None = None
        self._has_grown = False
        self.is_finished = False
        self._settled: dict[str, Any] = {}

    def take(self, wire: dict[str, Any]) -> None:
        """Decode a chunk of the candidate."""
        self._has_grown = False
        if (content := wire.get("content")) is not None:
            self._take_content(content)
        if self._metadata.update(wire):
            self.is_finished = True
        elif self._has_grown and not self._is_only_text():
            self.is_finished = False  # the model ran code and continued

    def _is_only_text(self) -> bool:
        """Whether there is nothing but text, the rest of which some proxies send after the end."""
        thoughts = (isinstance(part, (Text, Thinking)) for part in self._parts)
        return type(self._parts[-1]) is Text and all(thoughts)

    def grown(self, wire: dict[str, Any]) -> PartDelta | None:
        """The delta that the latest chunk would add if repeated, if it is only text."""
        content, part = wire.get("content"), self._open
        if not wire.keys() <= _PLAIN_FIELDS or self.is_finished or type(content) is not dict:
            return None
        parts = content.get("parts")
        if type(parts) is not list or len(parts) != 1 or content.keys() != _PLAIN_CONTENT:
            return None
        latest = parts[0]
        text = latest.get("text") if type(latest) is dict and content["role"] == "model" else None
        is_plain = type(part) is Text and part.extras is EMPTY and len(latest or ()) == 1
        is_thought = type(part) is Thinking and latest == {"text": text, "thought": True}
        if type(text) is not str or not text or not (is_plain or is_thought):
            return None
        is_same = is_plain or decode_part(latest, self.reading).extras == (part and part.extras)
        return PartDelta(self._index, text, choice=self._number) if is_same else None

    def end(self) -> None:
        """End the candidate: only now it is certain that nothing follows the finish reason."""
        finish = self._decoded_finish()
        if not self.is_finished:  # an interrupted part is not stopped
            self._settle_call()
            self.settle()
            return
        self._stop()
        if finish is not None:
            self._emit(finish)

    def settle(self) -> None:
        """Emit what would have come with the finish reason, if a stream that fails has none."""
        fields = self._metadata.fields
        held = {key: fields[key] for key in fields if key not in _CITED and fields[key] is not None}
        if self._content is not None and self._content != _MODEL:
            held["content"] = self._content
        if not self.is_finished and held.keys() - {"index"} and held != self._settled:
            event = events.OpaqueEvent(NAME, {"candidates": [held]})
            self._settled = event.payload["candidates"][0]
            self._emit(event)

    # --- content

    def _take_content(self, content: Any) -> None:
        if type(content) is not dict:
            content = {"parts": content}
        known = self._content = {} if self._content is None else self._content
        parts = content.get("parts")
        if type(parts) is list and len(content) == _PLAIN and content.get("role") == "model":
            known["role"] = "model"  # the most common case
        else:
            for key, value in content.items():
                if key != "parts" and (value is not None or key not in known):
                    known[key] = value
            parts = _listed(parts)
        for part in parts:
            # Shortcut for the most common part.
            if type(part) is dict and len(part) == 1 and type(text := part.get("text")) is str:
                self._grow_text(text)
            else:
                self._take_part(part)

    def _take_part(self, wire: Any) -> None:
        if type(wire) is str:
            self._grow_text(wire)
            return
        if (call := call_in(wire)) is not None:
            if self._call is not None and self._continues(call):
                self._grow_call(self._call, call)
                return
            if is_piece(call) and self._begin_call(wire, call):
                return
            if not call and self._parts and isinstance(self._parts[-1], ToolCall):
                return  # the end of a call that was already complete
        self._grow(decode_part(wire, self.reading))

    def _grow_text(self, text: str) -> None:
        grown = self._open
        if not text:
            return
        if type(grown) is Text and grown.extras is EMPTY:
            self._has_grown = True
            self._emit(PartDelta(self._index, text, choice=self._number))
        else:
            self._open_with(Text(text))

    def _grow(self, part: AnyPart) -> None:
        """Add a part, or extend the open one."""
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
            self._events.stop(self._index)

    @property
    def _index(self) -> int:
        """The index of the latest part."""
        return self._events.count - 1

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
        self._events.start(part)

    def _stop(self) -> None:
        """Stop the latest part."""
        if self._settle_call() or self._open is not None:
            self._open = None
            self._events.stop(self._index)

    # --- calls that come in pieces

    def _begin_call(self, wire: dict[str, Any], call: dict[str, Any]) -> bool:
        part = decode_part(call_head(wire), self.reading)
        if not isinstance(part, ToolCall):
            return False
        # Until it is complete, its arguments must not look complete.
        self._start(part.replace_unchecked(raw="{", input=None))
        self._call = GrowingCall()
        self._grow_call(self._call, call)
        return True

    def _continues(self, call: dict[str, Any]) -> bool:
        """Whether it is more of the growing call: it has no name, or a piece repeats the name."""
        if "name" not in call:
            return True
        known = self._parts[-1]
        if not isinstance(known, ToolCall) or call["name"] != known.name:
            return False
        return call.get("id") in {None, known.id} and is_piece(call)

    def _settle_call(self) -> bool:
        """Emit the arguments of the growing call, if there is one."""
        call, self._call = self._call, None
        if call is not None and (rest := call.rest()):
            self._events.grow(self._index, rest)
        return call is not None

    def _grow_call(self, growing: GrowingCall, call: dict[str, Any]) -> None:
        self._has_grown = True
        growing.grow(call)
        if growing.is_whole:
            self._stop()

    # --- the end

    def _decoded_finish(self) -> events.ChoiceFinish | None:
        """The finish event decoded like a whole response; also emits the citations of texts."""
        wire = self._metadata.fields
        if self._content is not None:
            wire = {**wire, "content": self._content}
        identity = self.reading.calls.identity
        choice = decode_candidate(wire, self._number, identity, None, tuple(self._parts))
        message = choice.message
        for index, part in enumerate(message.parts):
            if isinstance(part, Text) and part.citations:
                self._events.grow(index, citations=part.citations)
        if choice.finish is None:
            return None
        finish, word = choice.finish, choice.finish_raw
        return events.ChoiceFinish(
            finish, word, self._number, choice.logprobs, choice.extras, message.extras
        )


def _listed(parts: Any) -> list[Any]:
    if is_list(parts) or parts is None:
        return parts or []
    return [parts if is_object(parts) else {"text": plain_text(parts)}]


def _is_raw(part: Audio) -> bool:
    is_bare = part.signature is None and not part.extras and bool(part.data)
    return is_bare and part.mime is not None and part.mime.lower().startswith(_PCM)
