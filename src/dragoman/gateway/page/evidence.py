"""Finds the message that a piece of an encoded body came from, by text, ids and position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.gateway.page.wire_units import LABELS, NAMES, Kind, Unit
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

Owner = tuple[int, int]
"""Indexes of a message and one of its parts; -1 is the request's own system prompt."""
_REQUEST = -1
_SKIPPED = frozenset({"origin", "item_id", "id", "wire_id", "call_id", "tool_name", "name", "mime",
                      "kind", "form", "extras", "citations"})  # fmt: skip
_IDS = frozenset({"id", "wire_id", "call_id", "name", "tool_name"})
_MIN_SEARCHED = 4
"""Minimum length of a text that is searched for inside other texts."""
_MAX_SEARCHED_MESSAGES = 500
_SHARED = (-2, -2)


class Evidence:
    """An index of the texts and ids in a request's messages, to find them in a body."""

    def __init__(self, request: Request) -> None:
        self.messages = request.messages
        self._texts: list[str] = []  # kept alive, so that no other object reuses an id
        self._marks: dict[int, Owner] = {}
        self._values: dict[str, list[Owner]] = {}
        self._names: dict[str, list[int]] = {}
        self._kinds = [_kinds_of(message) for message in request.messages]
        for number, part in enumerate(request.system):
            self._take((_REQUEST, number), part)
        for index, message in enumerate(request.messages):
            for number, part in enumerate(message.parts):
                self._take((index, number), part)
            for text in texts_in(message.extras):
                self._mark(text, (index, 0))

    def _take(self, owner: Owner, part: Part) -> None:
        for text in texts_in((part.extras, getattr(part, "citations", ()))):
            self._mark(text, owner)  # matched by identity only: it may quote another message
        for text in _texts_of(part):
            self._mark(text, owner)
            if not text.strip():
                continue
            known = self._values.setdefault(text, [])
            if not known or known[-1] != owner:
                known.append(owner)
        for name in _ids_of(part):
            known_names = self._names.setdefault(name, [])
            if not known_names or known_names[-1] != owner[0]:
                known_names.append(owner[0])

    def _mark(self, text: str, owner: Owner) -> None:
        if len(text) > 1:  # Python shares one-character strings
            self._texts.append(text)
            if self._marks.setdefault(id(text), owner) != owner:
                self._marks[id(text)] = _SHARED

    def owner(self, unit: Unit) -> Owner | None:
        """Returns the owner of a piece's texts; None if no text identifies one."""
        found: Counter[Owner] = Counter()
        for text in texts_in(unit.value):
            mark = self._marks.get(id(text))
            if mark is not None and mark is not _SHARED:
                found[mark] += 1000
                continue
            owners = self._values.get(_data(text), ())
            if len(owners) == 1 and owners[0][0] != _REQUEST:
                found[owners[0]] += 1
        return max(found, key=lambda each: (found[each], -each[0], -each[1])) if found else None

    def guess(self, unit: Unit, low: int, high: int, used: Counter[int]) -> int | None:
        """Returns the likely message, `low` to `high`, of a piece without identifying texts."""
        texts = [_data(text) for text in texts_in(unit.value) if text]
        shared = {owner[0] for text in texts for owner in self._values.get(text, ())}
        named = {one for name in _names(unit.value) for one in self._names.get(name, ())}
        found = self._among(shared, unit, low, high, used)
        if found is None and texts:
            found = self._joined(texts, unit, range(low, high + 1), used)
        if found is None and texts and len(self.messages) <= _MAX_SEARCHED_MESSAGES:
            found = self._joined(texts, unit, range(len(self.messages)), used)
        if found is None:
            found = self._among(named, unit, low, high, used)
        return _REQUEST if found is None and _REQUEST in shared else found

    def _among(
        self, candidates: set[int], unit: Unit, low: int, high: int, used: Counter[int]
    ) -> int | None:
        """Returns the best candidate: nearby, with the same role, and with an unmatched part."""
        fitting = sorted(
            one for one in candidates if one != _REQUEST and self.may_hold(one, unit.kind)
        )
        near = [one for one in fitting if low <= one <= high] or fitting
        near = [one for one in near if self._may_say(one, unit)] or near
        if not near:
            return None
        return min(near, key=lambda one: (used[one] >= self._room(one, unit.kind), one))

    def _joined(self, texts: list[str], unit: Unit, among: range, used: Counter[int]) -> int | None:
        """Returns the message whose text is contained in one of these; unmatched messages first."""
        for index in sorted(among, key=lambda index: (used[index] > 0, index)):
            if not self.may_hold(index, unit.kind):
                continue
            for part in self.messages[index].parts:
                for mine in _texts_of(part):
                    if len(mine) >= _MIN_SEARCHED and any(mine in text for text in texts):
                        return index
        return None

    def next_left(self, unit: Unit, low: int, high: int, used: Counter[int]) -> int | None:
        """Returns the first unmatched message from `low` to `high`: its text was replaced."""
        for index in range(low, high + 1):
            fits = self._may_say(index, unit) and self.may_hold(index, unit.kind)
            if fits and not used[index]:
                return index
        return None

    def _may_say(self, index: int, unit: Unit) -> bool:
        """Whether the role of a piece matches a message."""
        if index == _REQUEST or unit.is_answer is None:
            return True
        return unit.is_answer == (self.messages[index].role is Role.ASSISTANT)

    def may_hold(self, index: int, kind: Kind) -> bool:
        """Whether a message has a part of this kind."""
        if index == _REQUEST:
            return kind == "said"
        return kind == "said" or self._kinds[index][kind] > 0

    def _room(self, index: int, kind: Kind) -> int:
        return self._kinds[index][kind] if kind != "said" else len(self.messages[index].parts)


def _kinds_of(message: Message) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for part in message.parts:
        name = type(part).__name__
        is_result = isinstance(part, ToolResult) or name in {"ServerToolResult", "Opaque"}
        kinds["result"] += is_result
        kinds["call"] += isinstance(part, ToolCall) or name in {"ServerToolCall", "Opaque"}
    return kinds


def _data(text: str) -> str:
    """Returns the payload of a `data:` URL, the form that media parts store; else the text."""
    return text.partition(",")[2] if text.startswith("data:") else text


def _texts_of(part: Part) -> Iterator[str]:
    """Yields the texts of a part that encoders write, without ids and labels."""
    for field in part.__struct_fields__:
        if field not in _SKIPPED:
            for text in texts_in(getattr(part, field)):
                yield _data(text)
    if isinstance(part, ToolCall) and part.kind == "function" and part.has_valid_arguments:
        yield from texts_in(part.arguments)
        if part.raw is None:
            yield part.raw_arguments


def _ids_of(part: Part) -> Iterator[str]:
    for field in _IDS.intersection(part.__struct_fields__):
        value = getattr(part, field)
        if isinstance(value, str) and value:
            yield value


def texts_in(value: Any) -> Iterator[str]:
    """Yields all texts in a nested value, except labels and names."""
    pending = [value]
    while pending:
        node = pending.pop()
        if type(node) is str:
            yield node
        elif isinstance(node, Mapping):
            pending += [each for key, each in node.items() if key not in LABELS | NAMES]
        elif isinstance(node, (list, tuple)):
            pending += node
        elif isinstance(node, msgspec.Struct):
            fields = node.__struct_fields__
            pending += [getattr(node, field) for field in fields if field not in _SKIPPED]


def _names(value: Any) -> Iterator[str]:
    """Returns the ids in a value; the tool names only if there are no ids."""
    pending, found = [value], list[tuple[bool, str]]()
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            for key, each in node.items():
                if key in NAMES and isinstance(each, str):
                    found.append((key.endswith("name"), each))
                else:
                    pending.append(each)
        elif isinstance(node, (list, tuple)):
            pending += node
    is_known = any(not is_name for is_name, _ in found)
    return iter([each for is_name, each in found if not (is_known and is_name)])
