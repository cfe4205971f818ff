"""One choice of a stream, written: events of parts become deltas.

A piece of a part is written as a message that holds that piece alone: what the plain form can
say, and what it can't, is decided in one place.
"""

from __future__ import annotations

from typing import Any

from dragoman.model.content import AnyPart
from dragoman.model.events import ChoiceFinish, PartDelta
from dragoman.model.frozen import EMPTY
from dragoman.model.ids import new_id
from dragoman.model.media import Audio
from dragoman.model.messages import Message
from dragoman.model.parts import (
    Opaque,
    Origin,
    Refusal,
    ServerToolCall,
    ServerToolResult,
    Text,
    Thinking,
)
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolCallDelta
from dragoman.wire.losses import Losses
from dragoman.wire.openai_chat.assistant import encode_assistant
from dragoman.wire.openai_chat.call_deltas import (
    encode_call_delta,
    encode_function_delta,
    is_legacy_delta,
)
from dragoman.wire.openai_chat.exchange import Outgoing
from dragoman.wire.openai_chat.finish import encode_finish
from dragoman.wire.openai_chat.speech import encode_speech_delta
from dragoman.wire.openai_chat.spelling import NAME, is_list, is_object, is_own, laid, words_of
from dragoman.wire.openai_chat.thinking import SHOWN, TEXT_FIELDS

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


class ChoiceEncoder:
    """Remembers the parts and calls of a choice while they grow."""

    def __init__(self, number: int, origin: Origin | None, losses: Losses) -> None:
        self.origin = origin
        self._number = number
        self._losses = losses
        self._path = f"choices[{number}].message"
        self._parts: dict[int, AnyPart] = {}
        self._calls: dict[Any, _Call] = {}
        self._last: _Call | None = None
        self._is_greeted = False
        self._has_text = False
        self._thoughts = 0
        self._executed: AnyPart | None = None
        self._finished: ChoiceFinish | None = None

    def greeting(self) -> Delta:
        """The role, once: it belongs into the first delta."""
        if self._is_greeted:
            return {}
        self._is_greeted = True
        return {"role": "assistant"}

    # --- parts

    def start(self, index: int, part: AnyPart) -> list[Delta]:
        """The deltas for what is known of a part when it starts."""
        self._parts[index] = part
        if isinstance(part, ToolCall):
            return self._start_call(index, part)
        if isinstance(part, (ServerToolCall, ServerToolResult)):
            return self._start_executed(index, part)
        if isinstance(part, Text) and not part.text and not part.citations and self._has_text:
            return []
        return self._piece(index, part)

    def grow(self, event: PartDelta) -> list[Delta]:
        """The deltas for more of a part."""
        part = self._parts.get(event.index)
        text = event.text
        if part is None:
            part = self._parts[event.index] = Text("")
        if type(part) is Text:
            if text and not event.citations and part.extras is EMPTY:  # nearly all are this
                self._has_text = True
                return [{"content": text}]
            piece = Text(text or "", event.citations, extras=part.extras)
            return self._piece(event.index, piece)
        if isinstance(part, ToolCall):
            return self._grow_call(event)
        grown = _grown(part, event)
        return [] if grown is None else self._piece(event.index, grown)

    def stop(self, index: int, final: AnyPart | None = None) -> list[Delta]:
        """The deltas that waited for the end of a part."""
        part = self._parts.get(index)
        if isinstance(part, ToolCall):
            return self._stop_call(self._calls.get(("part", index)), index)
        if part is None:
            return [] if final is None else self.start(index, final)
        if final is not None and self._executed is part:
            self._executed = self._parts[index] = final
        return []

    def stop_all(self) -> list[Delta]:
        """The deltas that still wait when the choice ends."""
        waiting = [delta for index in list(self._parts) for delta in self.stop(index)]
        executed, self._executed = self._executed, None
        if executed is not None and not _has_place(executed):
            waiting += self._piece(len(self._parts) - 1, executed)
        return waiting

    def _start_executed(self, index: int, part: AnyPart) -> list[Delta]:
        """One object is call and result here; with an index it may come twice, as at Groq."""
        call, self._executed = self._executed, None
        if not is_own(part.origin or self.origin):
            return self._piece(index, part)
        if isinstance(part, ServerToolResult):
            return self._piece(index, *([] if call is None else [call]), part)
        left = [] if call is None or _has_place(call) else self._piece(index, call)
        self._executed = part
        return [*left, *self._piece(index, part)] if _has_place(part) else left

    def _piece(self, index: int, *parts: AnyPart) -> list[Delta]:
        """A piece of a part, as a message of its own would have it."""
        part = parts[-1]
        is_ours = is_own(part.origin or self.origin)
        if isinstance(part, Audio) and is_ours and part.url is None and part.file_id is None:
            return [{"audio": encode_speech_delta(part)}]
        if isinstance(part, Opaque) and part.dialect == NAME and is_object(part.payload):
            if "tool_calls" in words_of(part.extras):
                return [{"tool_calls": [{"index": self._place(), **part.payload}]}]
        elif isinstance(part, Thinking) and not is_ours:
            parts = (self._apart(index, part),)
        out = Outgoing(is_response=True)
        message = Message(_ASSISTANT, parts, origin=self.origin)
        body = encode_assistant(message, out, self._path)
        for loss in out.losses:
            self._losses.add(loss.path.replace(".parts[0]", f".parts[{index}]"), loss.reason)
        del body["role"]
        if isinstance(part, Thinking) and SHOWN in words_of(part.extras) and part.text:
            body[TEXT_FIELDS[0]] = self._apart(index, part).text
        if isinstance(part, Text):
            self._has_text = True
            if part.citations and not part.text:
                body.pop("content", None)
        return [body] if body else []

    def _apart(self, index: int, part: Thinking) -> Thinking:
        """Another dialect's thoughts share one field here: a line apart."""
        if part.text and index != self._thoughts - 1:
            is_first = self._thoughts == 0
            self._thoughts = index + 1
            return part if is_first else part.replace(text=f"\n{part.text}")
        return part

    # --- calls

    def _place(self) -> int:
        self._calls[("place", len(self._calls))] = call = _Call(len(self._calls), "function")
        return call.number

    def call(self, piece: ToolCallDelta) -> list[Delta]:
        """The delta for a piece of a call, which goes to a place of its own (W35)."""
        is_ours = is_own(self.origin)
        key: tuple[str, int | str | None] = ("call", piece.index)
        call = self._calls.get(key) if piece.index is not None else self._last
        if piece.index is None and (call is None or piece.id):
            key = ("id", piece.id)
            call = self._calls.get(key)
        is_first = call is None
        if call is None:
            is_legacy = is_ours and is_legacy_delta(piece)
            call = self._calls[key] = _Call(len(self._calls), piece.kind, is_legacy=is_legacy)
        self._last = call
        call.has_arguments = call.has_arguments or bool(piece.arguments_delta)
        if call.is_legacy:
            return [{"function_call": encode_function_delta(piece)}]
        if piece.signature is not None and not is_ours:
            self._losses.add(f"{self._path}.tool_calls", "another dialect's signature is left out")
        wire_id = piece.id
        if is_first and wire_id is None and not is_ours:
            wire_id = new_id("call_")
        written = encode_call_delta(piece, call.number, wire_id, is_first=is_first, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _start_call(self, index: int, part: ToolCall) -> list[Delta]:
        call = self._calls[("part", index)] = _Call(len(self._calls), part.kind)
        arguments = part.raw if part.raw is not None else part.raw_arguments if part.input else ""
        call.has_arguments = bool(arguments)
        is_ours = is_own(part.origin or self.origin)
        if part.signature is not None and not is_ours:
            reason = "another dialect's signature is left out"
            self._losses.add(f"{self._path}.parts[{index}].signature", reason)
        piece = ToolCallDelta(
            None, part.id, part.name, arguments, self._number, part.kind,
            part.signature, part.extras,
        )  # fmt: skip
        wire_id = part.wire_id if is_ours and isinstance(part.wire_id, str) else part.id
        written = encode_call_delta(piece, call.number, wire_id, is_first=True, is_ours=is_ours)
        return [{"tool_calls": [written]}]

    def _grow_call(self, event: PartDelta) -> list[Delta]:
        call = self._calls[("part", event.index)]
        if event.signature is not None:
            reason = "another dialect's signature is left out"
            self._losses.add(f"{self._path}.parts[{event.index}].signature", reason)
        if not event.text:
            return []
        call.has_arguments = True
        return [_arguments(call, event.text)]

    def _stop_call(self, call: _Call | None, index: int) -> list[Delta]:
        """A call without arguments has an empty object: clients parse what they get (W67)."""
        if call is None or call.has_arguments or call.kind == "custom":
            return []
        if is_own(self._parts[index].origin or self.origin):
            return []
        call.has_arguments = True
        return [_arguments(call, "{}")]

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
    return "index" in part.extras.get(NAME, EMPTY)


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
        key: value[len(known.get(key) or ()) :] for key, value in now.items() if is_list(value)
    }
    return fresh if any(fresh.values()) else None
