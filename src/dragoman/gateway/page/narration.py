"""An answer that is coming in, as the page is told of it: parts that start, grow and end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dragoman.gateway.page.views import call_view, part_view
from dragoman.model.content import AnyPart
from dragoman.model.events import Event, PartDelta, PartStart, PartStop
from dragoman.model.parts import Refusal, Text, Thinking
from dragoman.model.tools import ToolCall, ToolCallDelta

_SPEECH = (Text, Thinking, Refusal)


class Narration:
    """What was told of one answer so far. Parts are numbered here, in the order they begin.

    The numbers of the wire don't do: those of tool calls that come in pieces are a row of their
    own, and some servers use one number for several calls.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, int], int] = {}
        self._said: dict[int, list[str]] = {}
        self._calls: list[int] = []
        self._ended: set[int] = set()
        self._ids: dict[int, str] = {}
        self._last: int | None = None

    def tell(self, event: Event) -> Iterator[dict[str, Any]]:
        """What an event adds; further choices are nothing to the page."""
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
        """The calls of an answer that is complete, those that came in pieces."""
        for number, call in zip(self._calls, calls, strict=False):
            yield from self._end(number, call)

    def _start(self, index: int, part: AnyPart) -> Iterator[dict[str, Any]]:
        if ("part", index) in self._numbers:
            return
        view = part_view(part, "")
        yield self._begun(("part", index), view["kind"], view.get("name"))

    def _begun(self, key: tuple[str, int], kind: str, name: str | None) -> dict[str, Any]:
        number = self._numbers[key] = len(self._said)
        self._said[number] = []
        if kind == "call":
            self._calls.append(number)
        told = {"type": "part", "index": number, "kind": kind}
        return told | ({"name": name} if name else {})

    def _more(self, number: int, text: str) -> Iterator[dict[str, Any]]:
        if text:
            self._said[number].append(text)
            yield {"type": "delta", "index": number, "text": text}

    def _piece(self, event: ToolCallDelta) -> Iterator[dict[str, Any]]:
        """A piece of a call; not all of them say whose they are (W7, W8)."""
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
        # The last word on a part may be more than was said before.
        whole, said = _text(part), "".join(self._said[number])
        if len(whole) > len(said) and whole.startswith(said):
            yield from self._more(number, whole[len(said) :])

    def _end(self, number: int, call: ToolCall) -> Iterator[dict[str, Any]]:
        if number not in self._ended:
            self._ended.add(number)
            yield {"type": "call", "index": number, "call": call_view(call)}


def _text(part: AnyPart) -> str:
    if isinstance(part, ToolCall):
        return part.raw or ""
    return part.text if isinstance(part, _SPEECH) else ""
