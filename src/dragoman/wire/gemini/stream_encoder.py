"""Stream encoder: canonical events to chunks, each a response with what is new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio
from dragoman.model.parts import Citation, Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta, make_call
from dragoman.model.usage import FinishReason
from dragoman.wire.cut_calls import cut_finish
from dragoman.wire.gemini.dialect import NAME, Writing
from dragoman.wire.gemini.response import (
    BLOCKED,
    WITHOUT_CONTENT,
    encode_candidate,
    encode_head,
    encode_usage,
    is_own,
)
from dragoman.wire.gemini.response_errors import encode_stream_error
from dragoman.wire.gemini.stream_chunks import ChunkWriter, Form, escape_separators
from dragoman.wire.gemini.tables import encode_part
from dragoman.wire.lane.flows import MARK, NO_BYTES, Flow, Writer, around_mark
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import note_of, with_overlay
from dragoman.wire.stream_encoding import HELD_BACK, TEXTS, EventEncoder, SentPart, is_carrier

_CHUNK = b'{"candidates":[{"content":{"parts":%b,"role":"model"}%b}]%b'


class StreamEncoder(EventEncoder):
    """Encodes events as chunks.

    Finish reasons and usage are in the last chunk, which is only written at the end of the
    response, because clients take it for the end (G1).
    """

    _dialect = NAME
    _has_one_choice = False

    def __init__(self, *, form: Form = "sse") -> None:
        self._writing = Writing()
        super().__init__(self._writing)
        self._chunks = ChunkWriter(form)
        self._head: dict[str, Any] = {}  # model and id
        self._tail = b"}"  # the end of each chunk: the same
        self._has_unsent_head = False  # whether no chunk has had this end yet
        self._candidates: dict[int, CandidateWriter] = {}

    # --- the response

    def _started(self, event: events.ResponseStart) -> bytes:  # noqa: ARG002 - it is in `_start`
        self._writing.origin = self._start.origin
        self._head = encode_head(self._start)
        head = with_overlay(dict(self._head), self._start.extras, NAME)
        tail = b"," + dumps(head)[1:] if head else b"}"
        self._has_unsent_head = self._has_unsent_head or tail != self._tail
        self._tail = tail
        return b""

    def _end(self) -> bytes:
        if not self._candidates:
            self._candidate(0)  # empty, but the end must be sent
        written = b"".join(
            [self._chunk(number, writer.rest()) for number, writer in self._candidates.items()]
        )
        body: dict[str, Any] = {}
        ordered = sorted(self._candidates.items())
        if candidates := [w.final_candidate() for _, w in ordered if not w.is_blocked]:
            body["candidates"] = candidates
        if self._usage is not None:
            body["usageMetadata"] = encode_usage(self._usage)
        body.update(self._head)
        last = with_overlay(body, self._start.extras, NAME)
        return written + self._chunks.write(dumps(last)) + self._chunks.end()

    def _error(self, error: events.StreamError) -> bytes:
        written = self._unsent_head() + self._chunks.write(dumps(encode_stream_error(error)))
        return written + self._chunks.end()

    def _unsent_head(self) -> bytes:
        """A chunk of fields that would have been in the next one, such as `promptFeedback`."""
        head = with_overlay({}, self._start.extras, NAME) if self._has_unsent_head else {}
        if not head:
            return b""
        return self._chunks.write(dumps({**self._head, **head}))

    def _held_back(self) -> Iterable[Loss]:
        found = [loss for writer in self._candidates.values() for loss in writer.held_back()]
        return [*super()._held_back(), *found]

    def _opaque(self, payload: dict[str, Any]) -> bytes:
        return self._chunks.write(dumps(payload))

    # --- candidates

    def _part_start(self, event: events.PartStart) -> bytes:
        writer = self._candidate(event.choice)
        return self._chunk(event.choice, writer.start(event.index, event.part))

    def _part_delta(self, event: PartDelta) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).grow(event))

    def _part_stop(self, event: events.PartStop) -> bytes:
        writer = self._candidate(event.choice)
        return self._chunk(event.choice, writer.stop(event.index, event.part))

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).call(event))

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        return self._chunk(event.choice, self._candidate(event.choice).finish(event))

    def _part_flow(self, event: PartDelta) -> Flow | None:
        form, kept = self._candidate(event.choice).flow_of(event)
        return None if form is None else Flow(event, self._around(event.choice, form), *kept)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        kept = self._candidate(event.choice).pieces_of(event)
        return Flow(event, NO_BYTES, *kept) if kept else None

    def _around(self, number: int, form: Parts) -> Writer:
        """A writer for such parts, with a text in place of the mark."""
        if not form:
            return NO_BYTES
        encode, encode_all = around_mark(self._chunk(number, form)) or NO_BYTES

        def escaped(text: str) -> bytes:
            written = encode(text)
            return written if written.isascii() else escape_separators(written)

        def all_escaped(texts: list[str]) -> bytes:
            written = encode_all(texts)
            return written if written.isascii() else escape_separators(written)

        return Writer(escaped, all_escaped)

    def _candidate(self, number: int) -> CandidateWriter:
        writer = self._candidates.get(number)
        if writer is None:
            writer = self._candidates[number] = CandidateWriter(number, self._writing)
        return writer

    def _chunk(self, number: int, parts: Parts) -> bytes:
        if not parts:
            return b""
        # Vertex AI omits a zero; the last chunk has it, unless the original had none.
        index = b',"index":%d' % number if number else b""
        self._has_unsent_head = False
        return self._chunks.write(_CHUNK % (dumps(parts), index, self._tail))


# --- one candidate

Parts = list[Any]
"""Encoded parts to send now; empty if more has to come first."""
_CALL, _OTHER = make_call("", ""), Refusal("")
_TEXTS = {("text",): "text", ("text", "thought"): "thought"}


class _Streamed(SentPart):
    """A part that is sent as it comes: text, thinking, or audio."""

    __slots__ = ("citations", "is_plain", "place")

    part: Text | Thinking | Refusal | Audio

    def __init__(self, number: int, part: Text | Thinking | Refusal | Audio) -> None:
        super().__init__(number, part)
        self.place: int | None = None  # its index as clients count parts
        self.pieces = [] if isinstance(part, Audio) else [part.text]
        self.citations: list[Citation] = []
        if isinstance(part, Text) and part.citations:
            self.cite(part.citations)
        self.is_sealed = bool(part.signature)
        self.is_plain = NAME not in part.extras

    def cite(self, citations: tuple[Citation, ...]) -> None:
        """Add citations, which are sent in the last chunk."""
        self.citations += citations
        self.cited = len(self.citations)


class CandidateWriter:
    """Sends text at once, and holds back calls and other parts until they are complete."""

    def __init__(self, number: int, writing: Writing) -> None:
        self._number = number
        self._writing = writing
        self._streamed: dict[int, _Streamed] = {}
        self._waiting: dict[int, tuple[int, MessageAccumulator]] = {}
        self._calls: MessageAccumulator | None = None
        self._sent_calls: set[str] = set()  # the ids of the calls that were sent
        self._call_numbers: list[int] = []  # their indexes in the message
        self._held: list[tuple[int, AnyPart]] = []
        self._last = -1  # index of the latest part that is content
        self._has_calls = self._may_settle = self._has_cut_calls = False
        self._count = 0  # started parts
        self._places = 0  # parts as clients count them, joining consecutive texts
        self._latest: _Streamed | None = None
        self._last_kind: str | None = None
        self._finish: events.ChoiceFinish | None = None

    # --- parts

    def start(self, index: int, part: AnyPart) -> Parts:
        """Start a part."""
        number = self._count
        self._count += 1
        if is_carrier(index) and self._held:
            self._held.append((number, part))
            return []
        before = self._settled_calls() + self._held_calls()
        if not is_carrier(index):
            self._last = number
        if isinstance(part, TEXTS) or (
            isinstance(part, Audio) and not self._writing.is_foreign(part)
        ):
            self._streamed[index] = streamed = _Streamed(number, part)
            return before + self._begun(streamed)
        self._has_calls = self._has_calls or isinstance(part, ToolCall)
        whole = MessageAccumulator()
        whole.add(events.PartStart(0, part))
        self._waiting[index] = (number, whole)
        return before

    def _begun(self, streamed: _Streamed) -> Parts:
        part, is_ours = streamed.part, not self._writing.is_foreign(streamed.part)
        has_content = isinstance(part, Audio) or bool(part.text)
        has_content = has_content or (is_ours and bool(part.signature or part.extras))
        is_sealed = isinstance(part, Thinking) and part.data is not None
        if not has_content and not is_sealed and not isinstance(part, Refusal):
            return []
        written = self._encoded(part, streamed.number)  # also reports losses
        return self._placed(written, streamed) if has_content else []

    def _encoded(self, part: AnyPart, number: int) -> Parts:
        self._set_part(number)
        return encode_part(part, self._writing)

    def _set_part(self, number: int) -> None:
        """Set the current part, for reports."""
        self._writing.message, self._writing.part = self._number, number

    def _placed(self, written: Parts, streamed: _Streamed | None = None) -> Parts:
        """Count parts to send as clients do."""
        for part in written:
            kind = _TEXTS.get(tuple(part)) if type(part) is dict else None
            if kind is None or kind != self._last_kind:
                self._places += 1
            self._last_kind = kind
            if streamed is not None and streamed.place is None:
                streamed.place = self._places - 1
        self._latest = streamed
        return written

    def grow(self, event: PartDelta) -> Parts:
        """Add a delta to a part."""
        streamed = self._streamed.get(event.index)
        if streamed is None:
            if (waiting := self._waiting.get(event.index)) is not None:
                waiting[1].add(event.replace(index=0, choice=0))
                return []
            before = self.start(event.index, Text(""))  # not announced
            return before + self.grow(event)
        return self._more(streamed, event)

    def flow_of(self, event: PartDelta) -> tuple[Parts | None, tuple[list[str], ...]]:
        """The template for the next text of a part, with a mark, and the lists that collect it.

        The template is empty if nothing is sent until the part is complete, None if unknown.
        """
        streamed, waiting = self._streamed.get(event.index), self._waiting.get(event.index)
        if streamed is None:
            like = event.replace(index=0, choice=0)
            kept = () if waiting is None else waiting[1].texts_of(like)
            return ([], kept) if kept else (None, ())
        part = streamed.part
        if self._latest is not streamed or not streamed.is_plain or isinstance(part, Audio):
            return None, ()
        form = {"text": MARK, "thought": True} if isinstance(part, Thinking) else {"text": MARK}
        return [form], (streamed.pieces,)

    def pieces_of(self, event: ToolCallDelta) -> tuple[list[str], ...]:
        """The lists that collect the arguments of a call."""
        return () if self._calls is None else self._calls.texts_of(event)

    def stop(self, index: int, final: AnyPart | None) -> Parts:
        """Stop a part; `final` may have more than was sent."""
        streamed = self._streamed.get(index)
        if streamed is not None:
            return [] if final is None else self._rest(streamed, final)
        waiting = self._waiting.pop(index, None)
        if waiting is None:
            return [] if final is None else self.start(index, final) + self.stop(index, None)
        number, whole = waiting
        whole.add(events.PartStop(0, final))
        part = whole.message.parts[0]
        if self._finish is None and isinstance(part, ToolCall) and _may_be_cut(part):
            self._held.append((number, part))
            return []
        return self._placed(self._encoded(part, number))

    def _held_calls(self) -> Parts:
        """The calls that may have been cut off (I7), and the envelopes that follow them."""
        held, self._held = self._held, []
        return [each for number, part in held for each in self._placed(self._encoded(part, number))]

    def _more(self, streamed: _Streamed, event: PartDelta) -> Parts:
        """Encode more of a part as a part of its own."""
        part = streamed.part
        streamed.pieces.append(event.text or "")
        streamed.cite(event.citations)
        changes: dict[str, Any] = {"signature": event.signature}
        if isinstance(part, (Thinking, Audio)):
            changes["data"] = event.data
        if not isinstance(part, Audio):
            changes["text"] = event.text or ""
        if not any(changes.values()):
            return []
        if isinstance(part, Audio):  # deltas are inline data, whatever the start was
            changes |= {"data": event.data or "", "url": None, "file_id": None}
        elif isinstance(part, Text):
            changes["citations"] = ()
        streamed.is_sealed = streamed.is_sealed or bool(event.signature)
        written = self._encoded(part.replace_unchecked(**changes), streamed.number)
        has_content = bool(event.text or event.data) or not self._writing.is_foreign(part)
        return self._placed(written, streamed) if has_content else []

    def _rest(self, streamed: _Streamed, final: AnyPart) -> Parts:
        """The rest of a part's final form."""
        self._set_part(streamed.number)
        rest = streamed.rest(final, self._writing.lose_here)
        if rest is None:
            return []
        cited = rest.citations if isinstance(rest, Text) else ()
        signature = None if streamed.is_sealed else rest.signature
        return self._more(streamed, PartDelta(0, rest.text, signature, citations=cited))

    # --- calls

    def call(self, event: ToolCallDelta) -> Parts:
        """Add a piece of a call; calls may grow in parallel, so all wait for the end (W7, W87)."""
        is_sent = not event.name or event.id in self._sent_calls
        if self._calls is None and is_sent and self._has_calls:
            if event.arguments_delta:
                place = f"choices[{self._number}].message.tool_calls"
                self._writing.lose(place, "content added to a call after its end is left out")
            return []
        before = self._held_calls()
        if self._calls is None:
            self._calls = MessageAccumulator()
            self._may_settle = True
        self._has_calls = True
        if self._calls.resolved(event).index == len(self._call_numbers):
            self._call_numbers.append(self._count)
            self._last = self._count
            self._count += 1
        self._calls.add(event)
        return before

    def _settled_calls(self) -> Parts:
        """The calls before another part, if they are complete, to keep the order."""
        if self._calls is None or not self._may_settle:
            return []
        calls = self._calls.response.choices[0].message.tool_calls
        # Checked only once: calls that are incomplete now wait for the end.
        self._may_settle = all(call.raw and call.has_valid_arguments for call in calls)
        return self._all_calls() if self._may_settle else []

    def _all_calls(self) -> Parts:
        calls, self._calls = self._calls, None
        numbers, self._call_numbers = self._call_numbers, []
        written: Parts = []
        found = () if calls is None else calls.response.choices[0].message.tool_calls
        self._sent_calls.update(call.id for call in found)
        for number, call in zip(numbers, found, strict=True):
            written += self._encoded(call, number)
        return self._placed(written)

    # --- the end

    def held_back(self) -> Iterator[Loss]:
        """What only the last chunk of a complete response could have sent."""
        choice = f"choices[{self._number}]"
        waiting = (*self._waiting.values(), *self._held)
        for number in (*(number for number, _ in waiting), *self._call_numbers):
            yield Loss(f"{choice}.message.parts[{number}]", HELD_BACK)
        for streamed in self._streamed.values():
            if streamed.citations:
                yield Loss(f"{choice}.message.parts[{streamed.number}].citations", HELD_BACK)
        event = self._finish
        if event is not None and event.extras:
            yield Loss(f"{choice}.extras", HELD_BACK)
        if event is not None and event.logprobs is not None:
            yield Loss(f"{choice}.logprobs", HELD_BACK)

    def finish(self, event: events.ChoiceFinish) -> Parts:
        """Finish the candidate; the reason is sent in the last chunk."""
        self._finish = event
        writing = self._writing
        writing.is_cut_off, writing.last = event.finish.is_cut_off, self._last
        try:
            return self.rest()
        finally:
            writing.is_cut_off = False  # of this candidate

    def rest(self) -> Parts:
        """All parts that are still waiting."""
        if not self._waiting and self._calls is None and not self._held:
            self._latest = None
            return []
        self._writing.has_cut_calls = False
        written = [part for index in list(self._waiting) for part in self.stop(index, None)]
        written = self._held_calls() + written + self._all_calls()
        self._has_cut_calls = self._has_cut_calls or self._writing.has_cut_calls
        return written

    @property
    def is_blocked(self) -> bool:
        """Whether there is no candidate because the prompt was blocked."""
        event = self._finish
        return event is not None and not self._count and bool(note_of(event.extras, NAME, BLOCKED))

    def final_candidate(self) -> dict[str, Any]:
        """The candidate of the last chunk, with finish reason and citations."""
        event = self._finish or events.ChoiceFinish(FinishReason.OTHER)
        if self._has_cut_calls:
            event = event.replace(finish=cut_finish(event.finish))
        is_ours = is_own(self._writing.origin)
        parts = self._cited()
        body = encode_candidate(self._number, event, parts, self._writing, is_ours=is_ours)
        if self._count or not note_of(event.extras, NAME, WITHOUT_CONTENT):
            # Clients expect parts in every chunk; the API also sends an empty text here.
            content = {"parts": [{"text": ""}], "role": "model"}
            body = {"content": with_overlay(content, event.message_extras, NAME), **body}
        return with_overlay(body, event.extras, NAME)

    def _cited(self) -> tuple[AnyPart, ...]:
        """The parts with citations, at the indexes that clients count."""
        cited: dict[int, list[Citation]] = {}
        for streamed in self._streamed.values():
            if isinstance(streamed.part, Text) and streamed.place is not None:
                cited.setdefault(streamed.place, []).extend(streamed.citations)
            elif streamed.citations:
                self._set_part(streamed.number)
                self._writing.lose_here("citations without a text are left out", ".citations")
        other = _CALL if self._has_calls else _OTHER
        if not any(cited.values()):
            return (other,)
        parts = [Text("", tuple(cited[n])) if n in cited else other for n in range(self._places)]
        return (*parts, other)


def _may_be_cut(call: ToolCall) -> bool:
    """Whether the end of the response decides if a call is complete."""
    return call.raw is not None and not call.object_arguments()
