"""Turns the events of a streamed response into the events that the page receives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.gateway.page.views import call_view, part_view
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta

_WITH_TEXT = (Text, Thinking, Refusal)


class StreamEvents:
    """Converts the events of one response. Numbers the parts in the order in which they begin.

    The wire's indexes can't be used: tool calls that arrive in pieces are indexed separately, and
    some servers use one index for several calls.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._texts: dict[int, list[str]] = {}
        self._calls: list[int] = []
        self._ended: set[int] = set()
        self._ids: dict[int, str] = {}
        self._last: int | None = None

    def convert(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yields the page events for one event; the page shows the first choice only."""
        if getattr(event, "choice", 0):
            return
        if isinstance(event, PartStart):
            yield from self._start(event.index, event.part)
            yield from self._more(self._numbers["part", event.index], _text(event.part))
        elif isinstance(event, PartDelta) and event.text:
            yield from self._start(event.index, Text(""))
            yield from self._more(self._numbers["part", event.index], event.text)
        elif isinstance(event, ToolCallDelta):
            yield from self._piece(event)
        elif isinstance(event, PartStop) and event.part is not None:
            yield from self._stop(event.index, event.part)

    def complete(self, calls: Iterable[ToolCall]) -> Iterator[dict[str, Any]]:
        """Yields the finished tool calls, including those that arrived in pieces."""
        for number, call in zip(self._calls, calls, strict=False):
            yield from self._end(number, call)

    def _start(self, index: int, part: AnyPart) -> Iterator[dict[str, Any]]:
        if ("part", index) in self._numbers:
            return
        view = part_view(part, "")
        yield self._begun(("part", index), view["kind"], view.get("name"))

    def _begun(self, key: tuple[str, int], kind: str, name: str | None) -> dict[str, Any]:
        number = self._numbers[key] = len(self._texts)
        self._texts[number] = []
        if kind == "call":
            self._calls.append(number)
        made = {"type": "part", "index": number, "kind": kind}
        return made | ({"name": name} if name else {})

    def _more(self, number: int, text: str) -> Iterator[dict[str, Any]]:
        if text:
            self._texts[number].append(text)
            yield {"type": "delta", "index": number, "text": text}

    def _piece(self, event: ToolCallDelta) -> Iterator[dict[str, Any]]:
        """Handles a fragment of a tool call; not every fragment names its call (W7, W8)."""
        index = event.index if event.index is not None else self._last or 0
        is_other = bool(event.id) and event.id != self._ids.get(index, event.id)
        self._last = index
        if event.id:
            self._ids[index] = event.id
        if is_other or ("call", index) not in self._numbers:
            yield self._begun(("call", index), "call", event.name)
        yield from self._more(self._numbers["call", index], event.arguments_delta or "")

    def _stop(self, index: int, part: AnyPart) -> Iterator[dict[str, Any]]:
        yield from self._start(index, part)
        number = self._numbers["part", index]
        if isinstance(part, ToolCall):
            yield from self._end(number, part)
            return
        # The final part may hold more text than its deltas did.
        whole, sent = _text(part), "".join(self._texts[number])
        if len(whole) > len(sent) and whole.startswith(sent):
            yield from self._more(number, whole[len(sent) :])

    def _end(self, number: int, call: ToolCall) -> Iterator[dict[str, Any]]:
        if number not in self._ended:
            self._ended.add(number)
            yield {"type": "call", "index": number, "call": call_view(call)}


def _text(part: AnyPart) -> str:
    if isinstance(part, ToolCall):
        return part.raw or ""
    return part.text if isinstance(part, _WITH_TEXT) else ""
