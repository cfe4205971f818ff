"""One choice of a stream, written: events of parts become deltas.

A piece of a part is written as a message that holds that piece alone: what the plain form can
say, and what it can't, is decided in one place.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import ChoiceFinish, PartDelta, ResponseStart
from dragoman.model.frozen import EMPTY
from dragoman.model.media import Audio
from dragoman.model.messages import make_message
from dragoman.model.parts import (
    Opaque,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.model.usage import FinishReason
from dragoman.wire.fitting.arguments import NO_ARGUMENTS
from dragoman.wire.losses import Losses
from dragoman.wire.openai_chat.assistant import encode_assistant
from dragoman.wire.openai_chat.call_deltas import (
    encode_call_delta,
    encode_function_delta,
    is_legacy_delta,
)
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.finish import encode_finish
from dragoman.wire.openai_chat.speech import encode_speech_delta, is_speech
from dragoman.wire.openai_chat.spelling import NAME, is_list, is_object, is_own, laid, words_of
from dragoman.wire.openai_chat.thinking import SHOWN, TEXT_FIELDS
from dragoman.wire.overlay import overlay
from dragoman.wire.streams import CORRECTED, unsent, unsent_arguments

Delta = dict[str, Any]
_ASSISTANT = Role.ASSISTANT


class _Call:
    """A call that is being written: its number here, and whether it has arguments yet."""

    __slots__ = ("has_arguments", "is_legacy", "kind", "number")

    def __init__(self, number: int, kind: Any, *, is_legacy: bool = False) -> None:
        self.number = number
        self.kind = kind
        self.is_legacy = is_legacy
        self.has_arguments = False


class _Growing:
    """A part that is being written: its number in the message, and what was said of it."""

    __slots__ = ("cited", "is_sealed", "number", "part", "pieces")

    def __init__(self, number: int, part: AnyPart) -> None:
        self.number = number
        self.part = part
        self.pieces: list[str] = []
        self.cited = 0
        self.is_sealed = False
        self.note(part)

    def note(self, said: AnyPart) -> None:
        """Note what is written of it now."""
        if isinstance(said, ToolCall):
            self.pieces.append(_begun_arguments(said))
        elif isinstance(said, (Text, Thinking, Refusal)):
            self.pieces.append(said.text)
            self.cited += len(said.citations) if isinstance(said, Text) else 0
            self.is_sealed = self.is_sealed or _is_sealed(said)


class ChoiceEncoder:
    """Remembers the parts and calls of a choice while they grow."""

    def __init__(self, number: int, start: ResponseStart, losses: Losses) -> None:
        self.origin = start.origin
        self._number = number
        self._losses = losses
        self._path = f"choices[{number}].message"
        self._parts: dict[int, _Growing] = {}
        self._count = 0  # the parts so far
        self._calls: dict[Any, _Call] = {}
        self._resolving = MessageAccumulator()  # tells which call a piece belongs to, and its id
        self._resolving.add(start)
        self._is_greeted = False
        self._has_text = False
        self._thoughts = 0
        self._executed: _Growing | None = None
        self._finished: ChoiceFinish | None = None

    def restart(self, start: ResponseStart) -> None:
        """More is known of the response."""
        self.origin = start.origin
        self._resolving.add(start)

    def greeting(self) -> Delta:
        """The role, once: it belongs into the first delta."""
        if self._is_greeted:
            return {}
        self._is_greeted = True
        return {"role": "assistant"}

    # --- parts

    def start(self, index: int, part: AnyPart) -> list[Delta]:
        """The deltas for what is known of a part when it starts."""
        growing = self._begun(index, part)
        if isinstance(part, ToolCall):
            return self._start_call(index, growing, part)
        if isinstance(part, (ServerToolCall, ServerToolResult)):
            return self._start_executed(growing)
        if isinstance(part, Text) and not part.text and not part.citations and self._has_text:
            return []
        return self._piece(growing, part)

    def _begun(self, index: int, part: AnyPart) -> _Growing:
        growing = self._parts[index] = _Growing(self._count, part)
        self._count += 1
        return growing

    def grow(self, event: PartDelta) -> list[Delta]:
        """The deltas for more of a part."""
        growing = self._parts.get(event.index)
        text = event.text
        if growing is None:
            growing = self._begun(event.index, Text(""))
        part = growing.part
        if type(part) is Text:
            if text and not event.citations and part.extras is EMPTY:  # nearly all are this
                self._has_text = True
                growing.pieces.append(text)
                return [{"content": text}]
            return self._more(growing, Text(text or "", event.citations, extras=part.extras))
        if isinstance(part, ToolCall):
            return self._grow_call(growing, event)
        grown = _grown(part, event)
        return [] if grown is None else self._more(growing, grown)

    def _more(self, growing: _Growing, piece: AnyPart) -> list[Delta]:
        growing.note(piece)
        return self._piece(growing, piece)

    def stop(self, index: int, final: AnyPart | None = None) -> list[Delta]:
        """The deltas that waited for the end of a part, and what the last word on it adds."""
        growing = self._parts.get(index)
        if growing is None:
            return [] if final is None else self.start(index, final) + self.stop(index)
        if isinstance(growing.part, ToolCall):
            return self._stop_call(growing, index, final)
        if final is None:
            return []
        if self._executed is growing and isinstance(final, ServerToolCall):
            growing.part = final
        return self._rest(growing, final)

    def _rest(self, growing: _Growing, final: AnyPart) -> list[Delta]:
        """What a last word adds to what was said (W26); it can't take anything back."""
        if not isinstance(growing.part, (Text, Thinking, Refusal)):
            if type(final) is not type(growing.part):
                self._unsent(growing, None)
            return []
        if not isinstance(final, (Text, Thinking, Refusal)) or type(final) is not type(
            growing.part
        ):
            self._unsent(growing, None)
            return []
        more = self._unsent(growing, unsent(growing.pieces, final.text))
        rest = final.replace(text=more)
        if isinstance(rest, Text):
            rest = rest.replace(citations=rest.citations[growing.cited :])
        elif isinstance(rest, Thinking) and growing.is_sealed:
            rest = rest.replace(signature=None, data=None)
        if not (more or _is_sealed(rest) or (isinstance(rest, Text) and rest.citations)):
            return []
        return self._more(growing, rest)

    def _unsent(self, growing: _Growing, more: str | None) -> str:
        if more is None:
            self._losses.add(f"{self._path}.parts[{growing.number}]", CORRECTED)
        return more or ""

    def stop_all(self, finish: FinishReason | None = None) -> list[Delta]:
        """The deltas that still wait when the choice ends.

        A call that was cut off before its arguments stays without any (I7).
        """
        waiting: list[Delta] = []
        if finish is None or not finish.is_cut_off:
            waiting = [delta for index in list(self._parts) for delta in self.stop(index)]
            waiting += self._stop_pieces()
        executed, self._executed = self._executed, None
        if executed is not None and not _has_place(executed.part):
            waiting += self._piece(executed, executed.part)
        return waiting

    def _stop_pieces(self) -> list[Delta]:
        """An empty object for others' calls that came in pieces, none of them of arguments."""
        if is_own(self.origin) or self._finished is not None:
            return []
        pieced = [call for (source, _), call in self._calls.items() if source == "call"]
        bare = [call for call in pieced if call.kind == "function" and not call.has_arguments]
        for call in bare:
            call.has_arguments = True
        return [_arguments(call, NO_ARGUMENTS) for call in bare]

    def _start_executed(self, growing: _Growing) -> list[Delta]:
        """One object is call and result here; with an index it may come twice, as at Groq."""
        part = growing.part
        call, self._executed = self._executed, None
        if not is_own(part.origin or self.origin):
            return self._piece(growing, part)
        if isinstance(part, ServerToolResult):
            return self._piece(growing, *([] if call is None else [call.part]), part)
        left = [] if call is None or _has_place(call.part) else self._piece(call, call.part)
        self._executed = growing
        return [*left, *self._piece(growing, part)] if _has_place(part) else left

    def _piece(self, growing: _Growing, *parts: AnyPart) -> list[Delta]:
        """A piece of a part, as a message of its own would have it."""
        number = growing.number
        part = parts[-1]
        is_ours = is_own(part.origin or self.origin)
        begun = growing.part
        if isinstance(part, Audio) and is_ours and isinstance(begun, Audio) and is_speech(begun):
            return [{"audio": encode_speech_delta(part)}]
        if isinstance(part, Opaque) and part.dialect == NAME and is_object(part.payload):
            if "tool_calls" in words_of(part.extras):
                return [{"tool_calls": [{"index": self._place(), **part.payload}]}]
        elif isinstance(part, Thinking) and not is_ours:
            parts = (self._apart(number, part),)
        out = Outgoing(is_response=True)
        message = make_message(_ASSISTANT, parts, origin=self.origin)
        body = encode_assistant(message, out, self._path)
        for loss in out.losses:
            self._losses.add(loss.path.replace(".parts[0]", f".parts[{number}]"), loss.reason)
        del body["role"]
        if isinstance(part, Thinking) and SHOWN in words_of(part.extras) and part.text:
            body[TEXT_FIELDS[0]] = self._apart(number, part).text
        if isinstance(part, Text):
            self._has_text = True
            if part.citations and not part.text:
                body.pop("content", None)
        return [body] if body else []

    def _apart(self, number: int, part: Thinking) -> Thinking:
        """Another dialect's thoughts share one field here: a line apart."""
        if part.text and number != self._thoughts - 1:
            is_first = self._thoughts == 0
            self._thoughts = number + 1
            return part if is_first else part.replace(text=f"\n{part.text}")
        return part

    # --- calls

    def _place(self) -> int:
        self._calls[("place", len(self._calls))] = call = _Call(len(self._calls), "function")
        return call.number

    def call(self, piece: ToolCallDelta) -> list[Delta]:
        """The delta for a piece of a call, which goes to a place of its own (W35)."""
        is_ours = is_own(self.origin)
        place, head = self._resolving.add_call(piece)
        key = ("call", place)
        call = self._calls.get(key)
        is_first = call is None
        if call is None:
            is_legacy = is_ours and is_legacy_delta(piece)
            call = self._calls[key] = _Call(len(self._calls), piece.kind, is_legacy=is_legacy)
            self._count += 1
        call.has_arguments = call.has_arguments or bool(piece.arguments_delta)
        if call.is_legacy:
            return [{"function_call": encode_function_delta(piece)}]
        if piece.signature is not None and not is_ours:
            self._losses.add(f"{self._path}.tool_calls", "another dialect's signature is left out")
        wire_id = piece.id
        if is_first and wire_id is None and not is_ours:
            wire_id = head.id
        written = encode_call_delta(piece, call.number, wire_id, is_first=is_first, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _start_call(self, index: int, growing: _Growing, part: ToolCall) -> list[Delta]:
        call = self._calls[("part", index)] = _Call(len(self._calls), part.kind)
        arguments = _begun_arguments(part)
        call.has_arguments = bool(arguments)
        is_ours = is_own(part.origin or self.origin)
        if part.signature is not None and not is_ours:
            reason = "another dialect's signature is left out"
            self._losses.add(f"{self._path}.parts[{growing.number}].signature", reason)
        piece = ToolCallDelta(
            None, part.id, part.name, arguments, self._number, part.kind,
            part.signature, part.extras,
        )  # fmt: skip
        wire_id = part.wire_id if is_ours and isinstance(part.wire_id, str) else part.id
        written = encode_call_delta(piece, call.number, wire_id, is_first=True, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _grow_call(self, growing: _Growing, event: PartDelta) -> list[Delta]:
        call = self._calls[("part", event.index)]
        if event.signature is not None:
            reason = "another dialect's signature is left out"
            self._losses.add(f"{self._path}.parts[{growing.number}].signature", reason)
        if not event.text:
            return []
        call.has_arguments = True
        growing.pieces.append(event.text)
        return [_arguments(call, event.text)]

    def _stop_call(self, growing: _Growing, index: int, final: AnyPart | None) -> list[Delta]:
        """A call without arguments has an empty object: clients parse what they get (W67)."""
        call, part = self._calls[("part", index)], growing.part
        if final is not None and not isinstance(final, ToolCall):
            self._unsent(growing, None)
        if isinstance(final, ToolCall) and (whole := _begun_arguments(final)):
            more = self._unsent(growing, unsent_arguments(growing.pieces, whole))
            return self._grow_call(growing, PartDelta(index, more))
        if call.has_arguments or call.kind == "custom":
            return []
        if isinstance(part, ToolCall) and part.raw is not None and self._is_ours(part):
            return []  # as it came
        call.has_arguments = True
        return [_arguments(call, NO_ARGUMENTS)]

    def _is_ours(self, part: AnyPart) -> bool:
        return is_own(part.origin or self.origin)

    # --- the end

    def finish(self, event: ChoiceFinish) -> dict[str, Any] | None:
        """The last chunk's choice; None where a second finish adds nothing."""
        known, self._finished = self._finished, event
        is_ours = is_own(self.origin)
        out = Outgoing(is_response=True)
        path = f"choices[{self._number}]"
        body: dict[str, Any] = {"index": self._number, "delta": self.greeting()}
        body["finish_reason"] = None if known else encode_finish(
            event.finish, event.finish_raw, out, path,
            is_ours=is_ours, has_calls=bool(self._calls),
        )  # fmt: skip
        if is_ours:
            body["delta"] = laid(body["delta"], event.message_extras)
            logprobs = event.logprobs if known is None else _more(known.logprobs, event.logprobs)
            if logprobs is not None:
                body["logprobs"] = logprobs
            body = laid(body, event.extras)
        elif event.logprobs is not None:
            out.lose(f"{path}.logprobs", "another dialect's probabilities are left out")
        for loss in out.losses:
            self._losses.add(loss.path, loss.reason)
        is_same = known is not None and (not is_ours or event == known)
        return None if is_same else body


def _has_place(part: AnyPart) -> bool:
    return "index" in overlay(part.extras, NAME)


def _is_sealed(part: AnyPart) -> bool:
    return isinstance(part, Thinking) and (part.signature is not None or part.data is not None)


def _begun_arguments(call: ToolCall) -> str:
    """The arguments that a call starts with: an empty object is none yet."""
    return call.raw if call.raw is not None else call.raw_arguments if call.input else ""


def _arguments(call: _Call, text: str) -> Delta:
    key = "input" if call.kind == "custom" else "arguments"
    return {"tool_calls": [{"index": call.number, call.kind: {key: text}}]}


def _grown(part: AnyPart, event: PartDelta) -> AnyPart | None:
    """What a part grows by, as a part."""
    fields: dict[str, Any] = {"origin": part.origin, "extras": part.extras}
    if isinstance(part, Thinking):
        return Thinking(
            event.text or "", event.data, part.form, signature=event.signature, **fields
        )
    if isinstance(part, Refusal):
        return Refusal(event.text or "", **fields)
    if isinstance(part, Audio):
        fields["extras"] = event.extras
        return Audio(data=event.data or "", transcript=event.text, **fields)
    return None


def _more(known: Any, now: Any) -> Any:
    """The log probabilities that were not there before."""
    if not is_object(now) or not is_object(known):
        return now
    fresh = {
        key: value[len(before) if is_list(before := known.get(key)) else 0 :]
        for key, value in now.items()
        if is_list(value)
    }
    return fresh if any(fresh.values()) else None
