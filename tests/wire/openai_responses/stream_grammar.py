"""The grammar of streams of the Responses API, as a state machine (W33, W34, W35)."""

from __future__ import annotations

import json
from typing import Any

from dragoman.wire.framing import SseParser

Wire = dict[str, Any]

_ENDS = {
    "response.completed": {"completed"},
    "response.incomplete": {"incomplete", "cancelled"},
    "response.failed": {"failed"},
}
# For each kind of text: its item's type, the list it is in, the entry's type, the field.
_WORDS = {
    "response.output_text": ("message", "content", "output_text", "text"),
    "response.refusal": ("message", "content", "refusal", "refusal"),
    "response.reasoning_text": ("reasoning", "content", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("reasoning", "summary", "summary_text", "text"),
}
_ARGUMENTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
    "response.mcp_call_arguments": ("mcp_call", "arguments"),
    "response.code_interpreter_call_code": ("code_interpreter_call", "code"),
}
_PARTS = {"response.content_part": "content", "response.reasoning_summary_part": "summary"}


class _Part:
    """A part of an item, with the text received so far."""

    def __init__(self, kind: str | None) -> None:
        self.kind = kind
        self.said = ""
        self.whole: str | None = None
        self.annotations: list[Any] = []
        self.is_done = False


class _Item:
    """An item of the output."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.parts: dict[tuple[str, int], _Part] = {}
        self.arguments = ""
        self.whole: str | None = None
        self.done: Wire | None = None

    def part(self, wire: Wire, field: str) -> _Part:
        """The open part that an event refers to."""
        part = self.parts[_place(wire, field)]
        assert not part.is_done, "a part is over when it is done"
        return part


class Grammar:
    """Checks a stream event by event; an assertion fails on the first invalid event.

    `is_recorded` allows what providers do: leave out numbers, names and items, and change ids. With
    `may_contradict` only the structure is checked: an item's final form may differ from what was
    streamed before, as in the stream it was decoded from.
    """

    def __init__(self, *, is_recorded: bool = False, may_contradict: bool = False) -> None:
        self.may_contradict = may_contradict
        self.state = "start"
        self.number = -1
        self.id: Any = None
        self.items: list[_Item] = []
        self.response: Wire = {}
        self.is_recorded = is_recorded

    def take(self, name: str | None, wire: Wire) -> None:
        """Checks one event: its name equals its type, its number is next, and it is allowed now."""
        kind = wire["type"]
        assert self.state not in {"completed", "incomplete", "failed"}, "nothing follows the end"
        if not self.is_recorded or name is not None:
            assert name == kind
        if not self.is_recorded or "sequence_number" in wire:
            assert wire["sequence_number"] == self.number + 1
            self.number += 1
        if kind in _ENDS:
            self._end(kind, wire)
            return
        base, _, verb = kind.rpartition(".")
        if kind != "error" and not kind.startswith("response."):
            self._other(wire)
            return
        for kinds, handler in (
            (_PARTS, self._part), (_WORDS, self._words), (_ARGUMENTS, self._arguments),
        ):  # fmt: skip
            if base in kinds:
                handler(base, verb, wire)
                return
        getattr(self, "_" + kind.removeprefix("response.").replace(".", "_"), self._other)(wire)

    def _agree(self, holds: bool) -> None:
        """Asserts what holds unless the stream contradicts itself."""
        assert holds or self.may_contradict

    # --- the response

    def _created(self, wire: Wire) -> None:
        assert self.state == "start"
        self.state = "created"
        self._check_head(wire["response"])

    def _in_progress(self, wire: Wire) -> None:
        assert self.state == "created"
        self.state = "running"
        self._check_head(wire["response"])

    def _check_head(self, response: Wire) -> None:
        assert response["object"] == "response"
        assert isinstance(response["id"], str)
        assert isinstance(response["model"], str)
        if not self.is_recorded:
            assert self.id in {None, response["id"]}, "the id stays"
        self.id = response["id"]

    def _end(self, kind: str, wire: Wire) -> None:
        assert self.state in {"running", "erring"}
        response = self.response = wire["response"]
        self._check_head(response)
        self._agree(response.get("status") in _ENDS[kind])
        assert isinstance(response["output"], list)
        if kind != "response.failed":
            assert self.state == "running", "after an error there is only failure"
            self._check_output(response["output"])
            self._agree(_is_usage(response.get("usage")))
        else:
            assert isinstance(response["error"]["message"], str)
            assert isinstance(response["error"]["code"], str)
        self.state = kind.removeprefix("response.")

    def _check_output(self, output: list[Wire]) -> None:
        """The final output has every item again, as in its done event."""
        if self.is_recorded and not output:
            return  # the Codex backend
        assert len(output) == len(self.items)
        for item, final in zip(self.items, output, strict=True):
            assert item.done is not None or self.is_recorded, "every item is done"
            done = item.done or final
            self._agree(final.get("type") == done.get("type"))
            self._agree(final.get("call_id") == done.get("call_id"))
            assert isinstance(final["id"], str) or self.is_recorded
            self._agree(self.may_contradict or _texts(final) == _texts(done))

    def _error(self, _wire: Wire) -> None:
        assert self.state == "running"
        self.state = "erring"

    # --- its items

    def _output_item_added(self, wire: Wire) -> None:
        assert self.state in {"running", "erring"}
        assert wire["output_index"] == len(self.items), "each has a place of its own (W35)"
        item = wire["item"]
        assert isinstance(item["id"], str)
        self._agree(_is_empty(item))
        self.items.append(_Item(item))

    def _item(self, wire: Wire) -> _Item:
        """The open item that an event refers to."""
        assert self.state in {"running", "erring"}
        item = self.items[wire["output_index"]]
        assert item.done is None, "an item is over when it is done"
        if not self.is_recorded:
            assert wire.get("item_id", item.wire["id"]) == item.wire["id"]
        return item

    def _output_item_done(self, wire: Wire) -> None:
        item, final = self._item(wire), wire["item"]
        self._agree(final.get("type") == item.wire.get("type"))
        if not self.is_recorded:
            assert final["id"] == item.wire["id"]
            assert all(part.is_done for part in item.parts.values())
        item.done = final
        if self.may_contradict:
            return
        for (field, index), part in item.parts.items():
            entry = final[field][index]
            assert entry["type"] == part.kind
            assert part.whole is None or entry[_field(part.kind)] == part.whole
        for kind, field in _ARGUMENTS.values():
            assert final["type"] != kind or item.whole in {None, final[field]}
        if final["type"] == "function_call":
            assert item.whole is not None, "arguments are told as a whole"

    def _part(self, base: str, verb: str, wire: Wire) -> None:
        item, field, entry = self._item(wire), _PARTS[base], wire["part"]
        place = _place(wire, field)
        if verb == "added":
            assert place[1] == sum(known[0] == field for known in item.parts), "counted up"
            item.parts[place] = _Part(entry.get("type"))
            return
        assert verb == "done"
        part = item.part(wire, field)
        self._agree(entry.get("type") == part.kind)
        self._agree(part.whole is None or entry.get(_field(part.kind)) == part.whole)
        part.is_done = True

    def _words(self, base: str, verb: str, wire: Wire) -> None:
        kind, field, entry, text = _WORDS[base]
        item = self._item(wire)
        assert item.wire["type"] == kind
        if self.is_recorded and kind == "reasoning" and _place(wire, field) not in item.parts:
            item.parts[_place(wire, field)] = _Part(entry)  # not sent by every provider
        part = item.part(wire, field)
        assert part.kind == entry
        assert part.whole is None
        if base == "response.output_text" and not self.is_recorded:
            assert isinstance(wire["logprobs"], list)
        if verb == "delta":
            part.said += wire["delta"]
            return
        assert verb == "done"
        part.whole = wire[text]
        self._agree(part.whole == part.said or self.is_recorded)

    def _output_text_annotation_added(self, wire: Wire) -> None:
        part = self._item(wire).part(wire, "content")
        assert wire["annotation_index"] == len(part.annotations)
        part.annotations.append(wire["annotation"])

    def _arguments(self, base: str, verb: str, wire: Wire) -> None:
        kind, field = _ARGUMENTS[base]
        item = self._item(wire)
        assert item.wire["type"] == kind
        assert item.whole is None
        if verb == "delta":
            item.arguments += wire["delta"]
            return
        assert verb == "done"
        item.whole = wire[field]
        self._agree(item.whole == item.arguments or self.is_recorded)

    def _other(self, wire: Wire) -> None:
        assert self.state in {"created", "running", "erring"}
        if "output_index" in wire:
            self._item(wire)


def _place(wire: Wire, field: str) -> tuple[str, int]:
    return field, wire["summary_index" if field == "summary" else "content_index"]


def _is_empty(item: Wire) -> bool:
    """Whether an added item is valid and has no content yet that is streamed."""
    kind = item.get("type")
    if kind == "message":
        return item.get("role") == "assistant" and item.get("content") == []
    if kind == "reasoning":
        return item.get("summary") == [] and not item.get("content")
    if kind not in ("function_call", "custom_tool_call"):
        return isinstance(kind, str)
    named = isinstance(item.get("call_id"), str) and isinstance(item.get("name"), str)
    return named and item.get("arguments" if kind == "function_call" else "input") == ""


def _field(kind: str | None) -> str:
    return "refusal" if kind == "refusal" else "text"


def _texts(item: Wire) -> list[Any]:
    """All texts of an item, whichever list they are in."""
    entries = [*(item.get("summary") or ()), *(item.get("content") or ())]
    said = [entry.get("text", entry.get("refusal")) for entry in entries if isinstance(entry, dict)]
    return [*said, item.get("arguments"), item.get("input")]


def _is_usage(usage: Any) -> bool:
    if not isinstance(usage, dict):
        return usage is None
    return all(isinstance(usage.get(key), int) for key in ("input_tokens", "output_tokens"))


def check_stream(
    stream: bytes, *, is_recorded: bool = False, may_contradict: bool = False
) -> Grammar:
    """Checks a whole stream and returns the final state."""
    grammar = Grammar(is_recorded=is_recorded, may_contradict=may_contradict)
    parser = SseParser()
    for frame in parser.feed(stream) + parser.close():
        if frame.data == "[DONE]":
            assert is_recorded
            continue
        if is_recorded and grammar.state in {"completed", "incomplete", "failed"}:
            break  # several responses in one file
        grammar.take(frame.event, json.loads(frame.data))
    return grammar
