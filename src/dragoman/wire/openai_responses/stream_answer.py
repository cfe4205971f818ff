"""What the items of a streamed answer share, and how the plain form writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dragoman.model.ids import new_id
from dragoman.model.messages import make_message
from dragoman.model.parts import Origin, Part
from dragoman.model.roles import Role
from dragoman.wire.losses import Losses
from dragoman.wire.openai_responses.forms import is_ours
from dragoman.wire.openai_responses.stream_frames import Frames
from dragoman.wire.openai_responses.stream_kinds import TEXT
from dragoman.wire.openai_responses.turns import Writer

Body = dict[str, Any]
_PATH = "choices[0].message"
_PREFIXES = {"message": "msg_", "reasoning": "rs_", "function_call": "fc_",
             "custom_tool_call": "ctc_"}  # fmt: skip


class Placed(Protocol):
    """An item that has a place in the output."""

    id: str
    index: int | None
    is_done: bool

    def progress(self) -> bytes:
        """What is to be said before any news of it."""
        ...


class Answer:
    """One answer: its events, its losses, and the items that have their place."""

    __slots__ = ("_by_id", "_message", "_placed", "_writer", "frames", "is_cut_off", "losses")

    def __init__(self) -> None:
        self.frames = Frames()
        self.losses = Losses()
        self.is_cut_off = False  # before the model was done
        self._placed: list[Placed] = []
        self._by_id: dict[str, Placed] = {}
        self._message = make_message(Role.ASSISTANT, id=new_id())  # its parts are elsewhere
        self._writer = self._begun()

    @property
    def id(self) -> str:
        """What the ids are made of that it gives."""
        return self._message.id

    def came_from(self, origin: Origin | None) -> None:
        """Where it comes from is known."""
        self._message = self._message.replace(origin=origin)
        self._writer = self._begun()

    def _begun(self) -> Writer:
        writer = Writer(is_answer=True, is_cut_off=True)  # so far
        writer.begin(self._message, _PATH)
        return writer

    def place(self, item: Placed) -> int:
        """Give an item the next place in the output (W35)."""
        self._placed.append(item)
        self._by_id[item.id] = item
        return len(self._placed) - 1

    def placed(self, wire: Mapping[str, Any]) -> Placed | None:
        """The item that an event is about, by its id or its place, if it is still open."""
        named, index = wire.get("item_id"), wire.get("output_index")
        item = self._by_id.get(named) if type(named) is str else None
        if named is None and type(index) is int and 0 <= index < len(self._placed):
            item = self._placed[index]
        return None if item is None or item.is_done else item

    def is_ours(self, part: Part) -> bool:
        """Whether a part came from this dialect."""
        return is_ours(self._message, part)

    def continues(self, part: Part, previous: Part) -> bool:
        """Whether a part belongs to the same item as the one before it."""
        return self._writer.continues(part, previous)

    def item(self, parts: Sequence[Part], start: int) -> Body | None:
        """The item of these parts, the first of which has that number; None where it has no place.

        In a stream each item has an id, and content is always a list.
        """
        writer = self._begun()
        writer.write_item(parts, start)
        self.losses.extend(writer.losses)
        self.losses.repair(writer.repairs)
        if not writer.items:
            return None
        if not isinstance(writer.items[0], Mapping):
            self.lose(start, "what is no object is no item in a stream")
            return None
        item = dict(writer.items[0])
        if "role" in item:
            item.setdefault("type", "message")
        if type(item.get("id")) is not str:
            kind = item.get("type")
            prefix = _PREFIXES.get(kind, "item_") if type(kind) is str else "item_"
            item["id"] = f"{prefix}{self.id.removeprefix('msg_')}_{start}"
        if type(item.get("content")) is str and item.get("role") == "assistant":
            item["content"] = [{**TEXT.entry, "text": item["content"]}]
        return item

    def lose(self, number: int, reason: str) -> None:
        """Note what could not be said of a part."""
        self.losses.add(f"{_PATH}.parts[{number}]", reason)
