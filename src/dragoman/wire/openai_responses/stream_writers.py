"""Items on their way: written as they begin, grow and end.

What an item is at any moment is decided by the plain form: the parts that it has so far, written
as an item. Only the pieces in between are of the stream's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.model.accumulate import MessageAccumulator
from dragoman.model.content import AnyPart
from dragoman.model.events import PartDelta, PartStart, PartStop
from dragoman.model.jsontext import dumps
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCall
from dragoman.wire.fitting.arguments import NO_ARGUMENTS
from dragoman.wire.openai_responses.citations import encode_citation
from dragoman.wire.openai_responses.forms import NAME
from dragoman.wire.openai_responses.stream_answer import Answer, Body
from dragoman.wire.openai_responses.stream_kinds import FUNCTION, TEXT, kind_of, text_of
from dragoman.wire.streams import CORRECTED

_EMPTIED: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": ""}
_STREAMED = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
TOO_LATE = "what was added to a part after its end is left out"


class PartWriter:
    """A part on its way: what it is so far, and what was said of it."""

    __slots__ = ("before", "cited", "folded", "index", "is_stopped", "item", "key", "kind",
                 "number", "said")  # fmt: skip

    def __init__(self, item: ItemWriter, number: int, event: PartStart) -> None:
        self.item = item
        self.number = number  # among those that are written
        self.key = event.index  # what its events call it
        self.kind = kind_of(event.part)
        self.index: int | None = None  # in its item, once it is there for all to see
        self.said: list[str] = []
        self.cited = 0
        self.is_stopped = False
        self.before: str | None = None  # what an item has that had to end, if this is the rest
        self.folded = MessageAccumulator()
        self.folded.add(event)

    @property
    def is_text(self) -> bool:
        """Whether it is of a kind that is written as it comes."""
        return isinstance(self.state, (Text, Refusal, Thinking, ToolCall))

    @property
    def state(self) -> AnyPart:
        """The part so far."""
        return self.folded.message.parts[0]


class ItemWriter:
    """An item on its way."""

    __slots__ = ("_answer", "_counts", "_id", "_open", "_parts", "_start", "id", "index",
                 "is_done", "last")  # fmt: skip

    def __init__(self, answer: Answer, start: int) -> None:
        self._answer = answer
        self._start = start  # the number of its first part
        self._parts: list[PartWriter] = []
        self._open = 0
        self._counts = {"content": 0, "summary": 0}
        self._id = b""
        self.id = ""
        self.index: int | None = None
        self.last: AnyPart | None = None
        self.is_done = False

    @property
    def is_stopped(self) -> bool:
        """Whether all its parts are done."""
        return self._open == 0

    @property
    def may_go_on(self) -> bool:
        """Whether another part may still belong to it."""
        part = self.last
        return part is not None and (
            isinstance(part, Thinking) or part.item_id is not None or NAME in part.extras
        )

    @property
    def may_end(self) -> bool:
        """Whether it may end before its parts do: others' texts, of which more can follow."""
        part = self.last
        return isinstance(part, (Text, Refusal, Thinking)) and not self._answer.is_ours(part)

    # --- its parts

    def start(self, number: int, event: PartStart) -> tuple[PartWriter, bytes]:
        """A part begins."""
        part = PartWriter(self, number, event)
        self._parts.append(part)
        self._open += 1
        self.last = event.part
        return part, self._shown(part, event.part)

    def grow(self, part: PartWriter, delta: PartDelta) -> bytes:
        """A part grows."""
        part.folded.add(delta)
        text = delta.text
        if part.index is None:
            return self._shown(part, part.state) if text else b""
        written = self._delta(part, text, delta.extras) if text else b""
        for citation in delta.citations:
            annotation = encode_citation(citation)
            if annotation is not None and part.kind is TEXT:
                written += self._annotation(part, annotation)
        return written

    def stop(self, part: PartWriter, event: PartStop) -> bytes:
        """A part is done; where it is done already, this is another last word on it."""
        if event.part is not None and self._takes_back(part, event.part):
            self._answer.lose(part.number, CORRECTED)
            event = PartStop(event.index)
        part.folded.add(event)
        if part.is_stopped or self.is_done:
            if self.index is None and text_of(part.state):  # it had nothing to show, and ended so
                self._answer.lose(part.number, TOO_LATE)
            return b""
        part.is_stopped = True
        self._open -= 1
        state = part.state
        if part.kind is FUNCTION and isinstance(state, ToolCall) and state.raw == "":
            state = self._filled(part, event, state)
        shown = self._shown(part, state) if part.index is None else b""
        return shown + self._ended(part, state)

    def _takes_back(self, part: PartWriter, final: AnyPart) -> bool:
        """Whether a last word leaves nothing of what was begun, or makes it another thing.

        An item that has its place must be there in the end: others' thoughts are none if empty.
        """
        is_shown = part.index is not None
        if type(final) is not type(part.state):
            return is_shown or part.is_text
        return is_shown and isinstance(final, Thinking) and self._is_nothing(final)

    def _is_nothing(self, thought: Thinking) -> bool:
        return not thought.text and not self._answer.is_ours(thought)

    def _filled(self, part: PartWriter, event: PartStop, call: ToolCall) -> ToolCall:
        """Others' calls without arguments have an empty object: clients parse what they get.

        One that was cut off before them stays without (I7).
        """
        if self._answer.is_ours(call) or self._answer.is_cut_off:
            return call
        call = call.replace_unchecked(raw=NO_ARGUMENTS)
        part.folded.add(event.replace(part=call))
        return call

    def _shown(self, part: PartWriter, state: AnyPart) -> bytes:
        """The beginning of a part, once there is something to see; and of its item before it."""
        if isinstance(state, Thinking) and self._is_nothing(state):
            return b""
        begun = self._begun()
        if self.index is None:
            return b""
        kind = part.kind
        part.index = 0
        if kind.field:
            part.index = self._counts[kind.field]
            self._counts[kind.field] += 1
            begun += self._about(part, f"{kind.part}.added", part=kind.entry)
        text = text_of(state)
        return begun + self._delta(part, text, {}) if text else begun

    def _delta(self, part: PartWriter, text: str, extras: Mapping[str, Any]) -> bytes:
        kind = part.kind
        if not kind.delta:
            return b""
        part.said.append(text)
        if kind is not TEXT:
            return self._about(part, kind.delta, delta=text)
        ours = extras.get(NAME) if extras else None
        logprobs = ours.get("logprobs") if isinstance(ours, Mapping) else None
        place = (self.index or 0, part.index or 0)
        return self._answer.frames.text_delta(self._id, place, text, _listed(logprobs))

    def _annotation(self, part: PartWriter, annotation: Any) -> bytes:
        number = part.cited
        part.cited += 1
        return self._about(
            part, "response.output_text.annotation.added",
            annotation_index=number, annotation=annotation,
        )  # fmt: skip

    def _ended(self, part: PartWriter, state: AnyPart) -> bytes:
        """The end of a part, with what was not said piece by piece."""
        kind = part.kind
        said = "".join(part.said)
        body = self._entry(part, state) if kind.field or kind.text else None
        if part.index is None or not (kind.field or kind.text):
            return b""
        if body is None:  # it has become something else: what was begun has to end
            body = {**kind.entry, kind.text: said} if kind.text else dict(kind.entry)
        written = b""
        whole = body.get(kind.text)
        if type(whole) is not str:
            whole = said
        if not kind.is_servers and len(whole) > len(said) and whole.startswith(said):
            written = self._delta(part, whole[len(said) :], {})
        if kind is TEXT and isinstance(annotations := body.get("annotations"), (list, tuple)):
            for annotation in annotations[part.cited :]:
                written += self._annotation(part, annotation)
        written += self._told(part, whole, body)
        return (
            written + self._about(part, f"{kind.part}.done", part=body) if kind.field else written
        )

    def _told(self, part: PartWriter, whole: str, body: Body) -> bytes:
        """The whole text, once."""
        kind = part.kind
        if not kind.done or (kind.is_servers and not part.said):
            return b""
        part.said = []
        more = {"logprobs": _listed(body.get("logprobs"))} if kind is TEXT else {}
        return self._about(part, kind.done, **{kind.text: whole}, **more)

    def _entry(self, part: PartWriter, state: AnyPart) -> Body | None:
        """A part as its item has it."""
        kind = part.kind
        item = self._answer.item([state], part.number)
        if item is None or not kind.field:
            return item
        entries = item.get(kind.field)
        entry = entries[0] if isinstance(entries, (list, tuple)) and entries else None
        return dict(entry) if isinstance(entry, Mapping) else None

    def progress(self) -> bytes:
        """The whole code for a server's tool: it comes before the news of its execution."""
        first = self._parts[0]
        return self._told(first, "".join(first.said), {}) if first.kind.is_servers else b""

    def _about(self, part: PartWriter, type: str, /, **fields: Any) -> bytes:
        place = {part.kind.place: part.index} if part.kind.place else {}
        return self._answer.frames.event(
            type, item_id=self.id, output_index=self.index, **place, **fields
        )

    # --- the item itself

    def body(self) -> Body | None:
        """The item as it is now."""
        return self._answer.item([part.state for part in self._parts], self._start)

    def _begun(self) -> bytes:
        if self.index is not None or (item := self.body()) is None:
            return b""
        self.id = item["id"]
        self.index = self._answer.place(self)
        self._id = dumps(self.id)
        if item.get("type") in _STREAMED:
            item |= {key: value for key, value in _EMPTIED.items() if key in item}
            if item["type"] == "reasoning":  # W26
                item = {k: v for k, v in item.items() if k not in {"content", "encrypted_content"}}
            if "status" in item:
                item["status"] = "in_progress"
        return self._answer.frames.event(
            "response.output_item.added", output_index=self.index, item=item
        )

    def end(self) -> bytes:
        """The end of the item."""
        if self.is_done:
            return b""
        open_parts = [part for part in self._parts if not part.is_stopped]
        written = b"".join([self.stop(part, PartStop(part.key)) for part in open_parts])
        self.is_done = True
        item = self.body()
        if self.index is None or item is None:
            return written
        item["id"] = self.id  # whatever it is called in the end: clients compare
        return written + self._answer.frames.event(
            "response.output_item.done", output_index=self.index, item=item
        )


def _listed(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else ()
