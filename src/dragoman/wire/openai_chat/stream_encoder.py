"""Stream encoder: canonical events to chunks of `/chat/completions`.

A piece of a part is encoded as a message that holds only that piece, so that what is supported
and what is lost is decided in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.model import events
from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.json_progress import is_beginning
from dragoman.model.jsontext import dumps
from dragoman.model.media import Audio
from dragoman.model.messages import make_message
from dragoman.model.parts import Opaque, ServerToolCall, ServerToolResult, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire.cut_calls import cut_finish, is_unfinished
from dragoman.wire.fitting.tools import NO_ARGUMENTS
from dragoman.wire.framing import is_event_name, sse
from dragoman.wire.json_values import is_list, is_object
from dragoman.wire.lane.flows import Flow, Writer, around_mark
from dragoman.wire.losses import Loss
from dragoman.wire.openai_chat.dialect import NAME, SHOWN, ChatWriting, is_own
from dragoman.wire.openai_chat.layout import (
    SECOND_AUDIO,
    encode_assistant,
)
from dragoman.wire.openai_chat.response import encode_finish, encode_usage, foreign_logprobs
from dragoman.wire.openai_chat.stream_deltas import (
    encode_call_delta,
    encode_function_delta,
    is_legacy_delta,
)
from dragoman.wire.openai_chat.stream_forms import choice_of, form_of
from dragoman.wire.openai_chat.tables import encode_speech_delta, is_speech
from dragoman.wire.openai_chat.thinking import TEXT_FIELDS, is_sealed_thinking
from dragoman.wire.openai_chat.tools import ARGUMENTS
from dragoman.wire.overlay import fields_of, with_overlay, words_of
from dragoman.wire.stream_encoding import (
    CORRECTED,
    EventEncoder,
    SentPart,
    arguments_of,
    is_carrier,
    piece_of,
    unsent_arguments,
)

Delta = dict[str, Any]
_ASSISTANT = Role.ASSISTANT
_OBJECT = "chat.completion.chunk"
_FOREIGN_SIGNATURE = "another provider's signature is left out"


class StreamEncoder(EventEncoder):
    """Encodes events as chunks, each as soon as it comes.

    `include_usage` is what the client requested in `stream_options` (W9). With it, chunks before
    the last have a usage of null, which Mistral's SDK refuses (`has_null_usage=False`).
    """

    _dialect = NAME
    _has_one_choice = False
    _reports_late_events = False

    def __init__(
        self, *, include_usage: bool = False, has_null_usage: bool = True,
        thinking_field: str = TEXT_FIELDS[0],
    ) -> None:  # fmt: skip
        """`thinking_field`: where this client reads thinking."""
        self._writing = ChatWriting(is_response=True)
        self._writing.thinking_field = thinking_field
        super().__init__(self._writing)
        self._include_usage = include_usage
        self._has_null_usage = has_null_usage
        self._head: dict[str, Any] = {"id": "", "object": _OBJECT, "created": 0, "model": ""}
        self._is_waiting = False
        self._choices: dict[int, ChoiceEncoder] = {}
        self._last: list[Delta] = []  # the deltas written last
        self._sent_extras: dict[str, Any] = {}
        self._unsent_extras: dict[str, Any] = {}

    def _started(self, event: events.ResponseStart) -> bytes:
        """Keep the head of every chunk, and send the first chunk at once (G3).

        Azure's first chunk, about its filter, has no id or model yet. Clients keep those of the
        first chunk that they receive, so it is delayed (W10).
        """
        head, sent = self._head, self._sent_extras
        head["id"] = head["id"] or event.id or ""
        head["model"] = head["model"] or event.model or ""
        if event.created_at is not None or not is_own(event.origin):
            head["created"] = head.get("created") or int(event.created_at or 0)
        elif not head.get("created"):
            head.pop("created", None)  # missing in the original
        for key, value in fields_of(event.extras, NAME).items():
            if not key.startswith(":") and (key not in sent or sent[key] != value):
                sent[key] = self._unsent_extras[key] = value
        for choice in self._choices.values():
            choice.restart(self._start)
        is_first = not self._choices and bool(head["id"] or head["model"] or self._is_waiting)
        self._is_waiting = True
        return self._chunk(0, {}) if is_first else b""

    def _part_start(self, event: events.PartStart) -> bytes:
        return self._deltas(event.choice, self._choice(event.choice).start(event.index, event.part))

    def _part_delta(self, event: PartDelta) -> bytes:
        return self._deltas(event.choice, self._choice(event.choice).grow(event))

    def _part_stop(self, event: events.PartStop) -> bytes:
        return self._deltas(event.choice, self._choice(event.choice).stop(event.index, event.part))

    def _tool_call_delta(self, event: ToolCallDelta) -> bytes:
        return self._deltas(event.choice, self._choice(event.choice).call(event))

    def _part_flow(self, event: PartDelta) -> Flow | None:
        sent = self._choice(event.choice).sent(event.index)
        encode = None if sent is None else self._around(event.choice, event.text)
        return None if sent is None or encode is None else Flow(event, encode, sent.pieces)

    def _call_flow(self, event: ToolCallDelta) -> Flow | None:
        kept = self._choice(event.choice).pieces_of(event)
        encode = self._around(event.choice, event.arguments_delta)
        return None if encode is None or not kept else Flow(event, encode, *kept)

    def _around(self, number: int, text: Any) -> Writer | None:
        """A writer for further deltas, if the last one was a text in one field or call."""
        form, count = form_of(self._last, text)
        if form is None or self._unsent_extras:
            return None
        return around_mark(self._written([choice_of(number, form)]), count)

    def _choice_finish(self, event: events.ChoiceFinish) -> bytes:
        """The finish reason; a second finish event only adds new information."""
        choice = self._choice(event.choice)
        written = self._deltas(event.choice, choice.stop_all(event.finish))
        body = choice.finish(event)
        return written if body is None else written + self._written([body])

    def _error(self, error: events.StreamError) -> bytes:
        mine = fields_of(error.extras, NAME)
        code = error.code if error.code is not None or error.status is None else str(error.status)
        body = {"message": error.message, "type": "server_error", "param": None, "code": code}
        return sse(dumps({"error": dict(mine) if mine else body}))

    def _held_back(self) -> Iterable[Loss]:
        return super()._held_back() if self._include_usage else ()

    def _opaque(self, payload: Mapping[str, Any]) -> bytes | None:
        name, data = payload.get("event"), payload.get("data")
        if isinstance(name, str) and is_event_name(name) and is_object(data):
            return sse(dumps(data), None if name == "message" else name)  # it is the default
        return None

    def _end(self) -> bytes:
        """Pending deltas, the usage if the client requested it, and `[DONE]`."""
        waiting = [self._deltas(n, choice.stop_all()) for n, choice in self._choices.items()]
        written = b"".join(waiting)
        if self._include_usage and self._usage is not None:
            written += self._written([], usage=encode_usage(self._usage))
        elif self._unsent_extras and is_own(self._start.origin):
            if self._include_usage:
                written += self._written([])
            else:
                reason = "received with the usage, which the client did not request"
                for key in self._unsent_extras:
                    self._lose(f"extras.{key}", reason)
        return written + b"data: [DONE]\n\n"

    # --- chunks

    def _choice(self, number: int) -> ChoiceEncoder:
        choice = self._choices.get(number)
        if choice is None:
            choice = self._choices[number] = ChoiceEncoder(number, self._start, self._writing)
        return choice

    def _deltas(self, number: int, deltas: list[dict[str, Any]]) -> bytes:
        if self._writing.losses:
            self._collect()  # reported once, however many pieces lose the same
        self._last = deltas
        if len(deltas) == 1:
            return self._chunk(number, deltas[0])
        return b"".join([self._chunk(number, delta) for delta in deltas])

    def _chunk(self, number: int, delta: Mapping[str, Any]) -> bytes:
        role = self._choice(number).role()
        body = {**role, **delta} if role else delta
        return self._written([choice_of(number, body)])

    def _written(self, choices: list[Any], usage: Any = None) -> bytes:
        body: dict[str, Any] = {**self._head, "choices": choices}
        if usage is not None or (self._include_usage and self._has_null_usage):
            body["usage"] = usage  # null until the last chunk (W9)
        if self._unsent_extras:
            body = with_overlay(body, {NAME: self._unsent_extras}, NAME)
            self._unsent_extras = {}
        return sse(dumps(body))


class _Call:
    """A call that is being written: its index, and whether it has arguments yet."""

    __slots__ = ("has_arguments", "is_legacy", "kind", "number")

    def __init__(self, number: int, kind: Any, *, is_legacy: bool = False) -> None:
        self.number = number
        self.kind = kind
        self.is_legacy = is_legacy
        self.has_arguments = False

    def more(self, text: str) -> list[Delta]:
        """The delta for more arguments."""
        self.has_arguments = True
        inner = {self.kind: {ARGUMENTS[self.kind]: text}}
        return [{"tool_calls": [{"index": self.number, **inner}]}]


class ChoiceEncoder:
    """Remembers the parts and calls of a choice while they grow."""

    def __init__(self, number: int, start: events.ResponseStart, writing: ChatWriting) -> None:
        self.origin = start.origin
        self._number = number
        self._writing = writing
        self._path = f"choices[{number}].message"
        self._parts: dict[int, SentPart] = {}
        self._count = 0  # parts so far
        self._calls: dict[tuple[str, Any], _Call] = {}
        self._resolving = MessageAccumulator()  # maps pieces to calls and their ids
        self._resolving.add(start)
        self._has_role = False
        self._has_text = False
        self._thoughts = 0
        self._executed: SentPart | None = None
        self._audio: SentPart | None = None
        self._left_out: set[int] = set()
        self._finished: events.ChoiceFinish | None = None
        self._bare: _Call | None = None  # a call that has stopped without arguments

    def restart(self, start: events.ResponseStart) -> None:
        """Update the start of the response."""
        self.origin = start.origin
        self._resolving.add(start)

    def role(self) -> Delta:
        """The role, once: it belongs in the first delta."""
        if self._has_role:
            return {}
        self._has_role = True
        return {"role": "assistant"}

    def sent(self, index: int) -> SentPart | None:
        """A part that has begun."""
        return self._parts.get(index)

    def pieces_of(self, piece: ToolCallDelta) -> tuple[list[str], ...]:
        """The lists that collect the arguments of a call."""
        return self._resolving.texts_of(piece)

    def _is_own(self, part: AnyPart) -> bool:
        return is_own(part.origin or self.origin)

    def _lose(self, sent: SentPart, reason: str, field: str = "") -> None:
        self._writing.lose(f"{self._path}.parts[{sent.number}]{field}", reason)

    # --- parts

    def start(self, index: int, part: AnyPart) -> list[Delta]:
        """The deltas for the initial content of a part."""
        sent = self._parts[index] = SentPart(self._count, part)
        sent.note(part)
        self._count += 1
        if isinstance(part, ToolCall):
            return self._end_bare() + self._start_call(index, sent, part)
        before = [] if is_carrier(index) else self._end_bare()
        return before + self._start_part(sent, part)

    def _start_part(self, sent: SentPart, part: AnyPart) -> list[Delta]:
        if isinstance(part, (ServerToolCall, ServerToolResult)):
            return self._start_executed(sent)
        if isinstance(part, Text) and not part.text and not part.citations and self._has_text:
            return []
        return self._piece(sent, part)

    def grow(self, event: PartDelta) -> list[Delta]:
        """The deltas for more of a part."""
        sent = self._parts.get(event.index)
        if sent is None:
            sent = self._parts[event.index] = SentPart(self._count, Text(""))
            self._count += 1
        part, text = sent.part, event.text
        if type(part) is Text:
            if text and not event.citations and part.extras is EMPTY:  # the most common case
                self._has_text = True
                sent.pieces.append(text)
                return [{"content": text}]
            return self._more(sent, Text(text or "", event.citations, extras=part.extras))
        if isinstance(part, ToolCall):
            return self._grow_call(sent, event)
        if isinstance(part, Audio):
            data = event.data or ""
            grown = Audio(data=data, transcript=text, origin=part.origin, extras=event.extras)
            return self._more(sent, grown)
        piece = piece_of(part, event)
        return [] if piece is None else self._more(sent, piece)

    def _more(self, sent: SentPart, piece: AnyPart) -> list[Delta]:
        sent.note(piece)
        return self._piece(sent, piece)

    def stop(self, index: int, final: AnyPart | None = None) -> list[Delta]:
        """The deltas delayed until the end of a part, and the rest of its final form."""
        sent = self._parts.get(index)
        if sent is None:
            return [] if final is None else self.start(index, final) + self.stop(index)
        if isinstance(sent.part, ToolCall):
            return self._stop_call(sent, sent.part, index, final)
        if final is None:
            return []
        if self._executed is sent and isinstance(final, ServerToolCall):
            sent.part = final
        rest = sent.rest(final, lambda reason: self._lose(sent, reason))
        if isinstance(rest, Thinking) and sent.is_sealed:
            rest = rest.replace(signature=None, data=None)
        is_sealed = isinstance(rest, Thinking) and is_sealed_thinking(rest)
        is_cited = isinstance(rest, Text) and bool(rest.citations)
        if rest is None or not (rest.text or is_sealed or is_cited):
            return []
        return self._more(sent, rest)

    def stop_all(self, finish: FinishReason | None = None) -> list[Delta]:
        """The deltas still pending when the choice ends.

        A call truncated before its arguments stays without any (I7).
        """
        waiting: list[Delta] = []
        if finish is None and self._finished is not None:
            finish = self._finished.finish
        if finish is None or not finish.is_cut_off:
            for index in list(self._parts):
                waiting += self.stop(index) + self._end_bare()
            waiting += self._stop_pieces()
        executed, self._executed = self._executed, None
        if executed is not None and not _is_supported(executed.part):
            waiting += self._piece(executed, executed.part)
        return waiting

    def _stop_pieces(self) -> list[Delta]:
        """Empty objects for other dialects' calls that got no arguments."""
        if is_own(self.origin) or self._finished is not None:
            return []
        pieced = [call for (source, _), call in self._calls.items() if source == "call"]
        bare = [call for call in pieced if call.kind == "function" and not call.has_arguments]
        return [delta for call in bare for delta in call.more(NO_ARGUMENTS)]

    def _start_executed(self, sent: SentPart) -> list[Delta]:
        """One object holds call and result; with an index it may be sent twice, as Groq does."""
        part = sent.part
        call, self._executed = self._executed, None
        if not self._is_own(part):
            return self._piece(sent, part)
        if isinstance(part, ServerToolResult):
            return self._piece(sent, *([] if call is None else [call.part]), part)
        left = [] if call is None or _is_supported(call.part) else self._piece(call, call.part)
        self._executed = sent
        return [*left, *self._piece(sent, part)] if _is_supported(part) else left

    def _piece(self, sent: SentPart, *parts: AnyPart) -> list[Delta]:
        """Encode a piece of a part as a message of its own."""
        part, begun = parts[-1], sent.part
        is_ours = self._is_own(part)
        if isinstance(part, Audio) and is_ours and isinstance(begun, Audio) and is_speech(begun):
            return self._one_audio(sent, {"audio": encode_speech_delta(part)})
        if isinstance(part, Opaque) and part.dialect == NAME and is_object(part.payload):
            if "tool_calls" in words_of(part.extras, NAME):
                number = self._add_call(("place", len(self._calls)), "function").number
                return [{"tool_calls": [{"index": number, **part.payload}]}]
        elif isinstance(part, Thinking) and not is_ours:
            parts = (self._apart(sent, part),)
        self._writing.place = f"{self._path}.parts[{sent.number}]"
        body = encode_assistant(make_message(_ASSISTANT, parts, origin=self.origin), self._writing)
        del body["role"]
        if isinstance(part, Thinking) and SHOWN in words_of(part.extras, NAME) and part.text:
            body[TEXT_FIELDS[0]] = self._apart(sent, part).text
        if TEXT_FIELDS[0] in body:
            body[self._writing.thinking_field] = body.pop(TEXT_FIELDS[0])
        if isinstance(part, Text):
            self._has_text = True
            if part.citations and not part.text:
                body.pop("content", None)
        if "audio" in body:
            return self._one_audio(sent, body)
        return [body] if body else []

    def _one_audio(self, sent: SentPart, delta: Delta) -> list[Delta]:
        """The delta, if it belongs to the first audio output: clients join all that they get."""
        if self._audio is None:
            self._audio = sent
        if self._audio is sent:
            return [delta]
        if sent.number not in self._left_out:
            self._left_out.add(sent.number)
            self._lose(sent, SECOND_AUDIO)
        return []

    def _apart(self, sent: SentPart, part: Thinking) -> Thinking:
        """Separate other dialects' thinking parts by newlines, since they share one field."""
        if not part.text or sent.number == self._thoughts - 1:
            return part
        is_first = self._thoughts == 0
        self._thoughts = sent.number + 1
        return part if is_first else part.replace(text=f"\n{part.text}")

    # --- calls

    def _add_call(self, key: tuple[str, Any], kind: str, *, is_legacy: bool = False) -> _Call:
        call = self._calls[key] = _Call(len(self._calls), kind, is_legacy=is_legacy)
        return call

    def call(self, piece: ToolCallDelta) -> list[Delta]:
        """The delta for a piece of a call; every call has its own index (W35)."""
        is_ours = is_own(self.origin)
        place, head = self._resolving.add_call(piece)
        call = self._calls.get(("call", place))
        is_first = call is None
        if call is None:
            is_legacy = is_ours and is_legacy_delta(piece)
            call = self._add_call(("call", place), piece.kind, is_legacy=is_legacy)
            self._count += 1
        call.has_arguments = call.has_arguments or bool(piece.arguments_delta)
        if call.is_legacy:
            return [{"function_call": encode_function_delta(piece)}]
        if piece.signature is not None and not is_ours:
            self._writing.lose(f"{self._path}.tool_calls", _FOREIGN_SIGNATURE)
        wire_id = head.id if is_first and piece.id is None and not is_ours else piece.id
        written = encode_call_delta(piece, call.number, wire_id, is_first=is_first, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _start_call(self, index: int, sent: SentPart, part: ToolCall) -> list[Delta]:
        call, arguments = self._add_call(("part", index), part.kind), arguments_of(part)
        call.has_arguments = bool(arguments)
        is_ours = self._is_own(part)
        if part.signature is not None and not is_ours:
            self._lose(sent, _FOREIGN_SIGNATURE, ".signature")
        piece = ToolCallDelta(
            None, part.id, part.name, arguments, self._number, part.kind,
            part.signature, part.extras,
        )  # fmt: skip
        wire_id = part.wire_id if is_ours and isinstance(part.wire_id, str) else part.id
        written = encode_call_delta(piece, call.number, wire_id, is_first=True, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _grow_call(self, sent: SentPart, event: PartDelta) -> list[Delta]:
        if event.signature is not None:
            self._lose(sent, _FOREIGN_SIGNATURE, ".signature")
        if not event.text:
            return []
        sent.pieces.append(event.text)
        return self._calls[("part", event.index)].more(event.text)

    def _stop_call(
        self, sent: SentPart, part: ToolCall, index: int, final: AnyPart | None
    ) -> list[Delta]:
        """End a call. One without arguments gets an empty object: clients parse them (W67)."""
        call = self._calls[("part", index)]
        if final is not None and not isinstance(final, ToolCall):
            self._lose(sent, CORRECTED)
        if isinstance(final, ToolCall) and (whole := arguments_of(final)):
            more = unsent_arguments(sent.pieces, whole)
            if more is None:
                self._lose(sent, CORRECTED)
            return self._grow_call(sent, PartDelta(index, more))
        is_as_it_came = part.raw is not None and self._is_own(part)
        if not (call.has_arguments or call.kind == "custom" or is_as_it_came):
            self._bare = call
        return []

    def _end_bare(self) -> list[Delta]:
        """An empty object for the call without arguments, once it is known not to be cut off."""
        call, self._bare = self._bare, None
        return [] if call is None or call.has_arguments else call.more(NO_ARGUMENTS)

    @property
    def _is_within_call(self) -> bool:
        """Whether the arguments of a call have begun and not ended."""
        if any(
            isinstance(sent.part, ToolCall)
            and sent.part.kind == "function"
            and is_beginning("".join(sent.pieces))
            for sent in self._parts.values()
        ):
            return True
        pieced = self._resolving.response.choices
        return any(is_unfinished(call) for each in pieced for call in each.message.tool_calls)

    # --- the end

    def finish(self, event: events.ChoiceFinish) -> dict[str, Any] | None:
        """The choice of the last chunk; None if a second finish event adds nothing."""
        known, self._finished = self._finished, event
        is_ours = is_own(self.origin)
        path = f"choices[{self._number}]"
        body: dict[str, Any] = {"index": self._number, "delta": self.role()}
        is_cut = not is_ours and bool(self._calls) and self._is_within_call
        finish = cut_finish(event.finish) if is_cut else event.finish
        body["finish_reason"] = None if known else encode_finish(
            finish, event.finish_raw, self._writing, path,
            is_ours=is_ours, has_calls=bool(self._calls),
        )  # fmt: skip
        if is_ours:
            body["delta"] = with_overlay(body["delta"], event.message_extras, NAME)
            logprobs = event.logprobs if known is None else _more(known.logprobs, event.logprobs)
            if logprobs is not None:
                body["logprobs"] = logprobs
            body = with_overlay(body, event.extras, NAME)
        elif event.logprobs is not None:
            logprobs = foreign_logprobs(event.logprobs, f"{path}.logprobs", self._writing)
            if logprobs is not None:
                body["logprobs"] = logprobs
        is_same = known is not None and (not is_ours or event == known)
        return None if is_same else body


def _is_supported(part: AnyPart) -> bool:
    return "index" in fields_of(part.extras, NAME)


def _more(known: Any, now: Any) -> Any:
    """The new log probabilities."""
    if not is_object(now) or not is_object(known):
        return now
    fresh = {
        key: value[len(before) if is_list(before := known.get(key)) else 0 :]
        for key, value in now.items()
        if is_list(value)
    }
    return fresh if any(fresh.values()) else None
