"""Maps the items of an encoded body to messages, so that the lens can show them side by side.

Encoders put the same string objects into the body that the request holds. If every text of the
request is a distinct object, object identity tells which message a text came from. Units without
such a text (a blank text, a call without arguments) are matched by value, by ids and names, and by
the order of the messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult

# --- units: pieces of an encoded body that belong to at most one message each

Kind = Literal["call", "result", "said"]
LABELS = frozenset({
    "role", "type", "status", "detail", "media_type", "mime_type", "mimeType", "format", "phase",
})  # fmt: skip
"""Fields whose values are keywords of the dialect."""
NAMES = frozenset({
    "id", "name", "call_id", "tool_call_id", "tool_use_id", "tool_name", "approval_request_id",
})  # fmt: skip
"""Fields that identify calls and tools; a call and its result share them."""
_CALLS = frozenset({"tool_use", "function_call", "functionCall", "custom_tool_call", "tool_calls"})
_RESULTS = frozenset({"tool_result", "functionResponse", "function_response"})
_ANSWERS = frozenset({"assistant", "model"})
_BY_ROLE: Mapping[str, Kind] = {"tool": "result", "function": "result"}


class Unit(NamedTuple):
    """A piece of a body: an item, or an entry of one of its lists."""

    item: str
    """The path of the item that contains it."""
    path: str
    value: Any
    kind: Kind
    is_answer: bool | None = None
    """Whether it is model output, by the item's role; None if the item has no role."""


def units_of(body: Mapping[str, Any], messages: str, system: str | None) -> list[Unit]:
    """Returns the units of the system prompt and of the messages, in order."""
    found: list[Unit] = []
    if system is not None and system in body and system != messages:
        found += _of_system(system, body[system])
    listed = body.get(messages)
    if not isinstance(listed, list):
        if listed is not None:
            found.append(Unit(messages, messages, listed, "said"))
        return found
    for number, item in enumerate(listed):
        found += _units_of(f"{messages}[{number}]", item)
    return found


def _of_system(path: str, value: Any) -> Iterator[Unit]:
    if isinstance(value, Mapping):
        lists = [(key, each) for key, each in value.items() if isinstance(each, list)]
        for key, each in lists:
            yield from _of_system(f"{path}.{key}", each)
        if not lists:
            yield Unit(path, path, value, "said")
    elif isinstance(value, list):
        for number, each in enumerate(value):
            place = f"{path}[{number}]"
            yield Unit(place, place, each, "said")
    else:
        yield Unit(path, path, value, "said")


def _units_of(path: str, item: Any) -> Iterator[Unit]:
    """Yields the units of an item: one per list entry, and one per other field."""
    if not isinstance(item, Mapping):
        yield Unit(path, path, item, "said")
        return
    outer, any_found = _kind_of(item), False
    role = item.get("role")
    is_answer = role in _ANSWERS if isinstance(role, str) else None
    for key, value in item.items():
        if key in LABELS or key in NAMES:
            continue
        any_found = True
        if isinstance(value, list) and value and outer != "result":
            for number, each in enumerate(value):
                kind = _kind_of(each) if key not in _CALLS else "call"
                yield Unit(path, f"{path}.{key}[{number}]", each, kind, is_answer)
        else:
            kind = "call" if key in _CALLS and value else outer
            # The whole item, because the call's id is beside its result.
            whole = item if outer != "said" else {key: value}
            yield Unit(path, f"{path}.{key}", whole, kind, is_answer)
    if not any_found:
        yield Unit(path, path, item, outer, is_answer)


def _kind_of(value: Any) -> Kind:
    if not isinstance(value, Mapping):
        return "said"
    word = value.get("type")
    word = word if isinstance(word, str) else ""
    if word in _RESULTS or word.endswith("_output") or not _RESULTS.isdisjoint(value):
        return "result"
    if word in _CALLS or word.endswith("_call") or not _CALLS.isdisjoint(value.keys() - {
        "tool_calls", "function_call"}):  # fmt: skip
        return "call"
    role = value.get("role")
    return _BY_ROLE.get(role, "said") if isinstance(role, str) else "said"


# --- evidence: the message that a piece came from, by text, ids and position

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


# --- alignment

REQUEST = -1
"""The owner of units that belong to no message but to the request's system prompt."""
_MAX_COMPARED = 200_000


class Aligned(NamedTuple):
    """The paths of a request's messages in a body."""

    rows: list[list[str]]
    """By message: the paths of its items in the body."""
    parts: Mapping[Owner, str]
    """By message and part: the closest known path."""

    def wire_path(self, path: str) -> str | None:
        """Returns the path in the body for a canonical path; None if unknown."""
        number, rest = _index(path, "messages")
        if number is None or number >= len(self.rows):
            return None
        part, _ = _index(rest.removeprefix("."), "parts")
        found = None if part is None else self.parts.get((number, part))
        return found or next(iter(self.rows[number]), None)


def fresh(request: Request) -> Request:
    """Returns a copy of the request in which no two texts are the same object."""
    return Request.from_json(request.to_json())


def aligned(
    request: Request, body: Mapping[str, Any], messages_field: str, system_field: str | None
) -> Aligned:
    """Finds the messages of a `fresh` request in the body that it was encoded to."""
    units = units_of(body, messages_field, system_field)
    evidence = Evidence(request)
    owners: list[int | None] = []
    parts: dict[Owner, str] = {}
    for unit in units:
        found = evidence.owner(unit)
        owners.append(None if found is None else found[0])
        if found is not None and found[0] != REQUEST:
            parts.setdefault(found, unit.path)
    _fill(units, owners, evidence)
    rows: list[list[str]] = [[] for _ in request.messages]
    for path, owner in _collapsed(units, owners, evidence):
        if owner is not None and owner != REQUEST:
            rows[owner].append(path)
    return Aligned(rows, parts)


def _fill(units: Sequence[Unit], owners: list[int | None], evidence: Evidence) -> None:
    """Finds owners by value, ids and order, for units without an identifying text."""
    used = Counter(owner for owner in owners if owner is not None and owner != REQUEST)
    for guess in (evidence.guess, evidence.next_left):
        settled = {unit.item for unit, owner in zip(units, owners, strict=True)
                   if owner is not None}  # fmt: skip
        ahead = _ahead(owners, len(evidence.messages) - 1)
        low, budget = 0, _MAX_COMPARED
        for place, unit in enumerate(units):
            owner = owners[place]
            is_open = guess == evidence.guess or unit.item not in settled
            if owner is None and is_open and budget > 0:
                high = max(low, ahead[place])
                budget -= high - low + 1
                owner = owners[place] = guess(unit, low, high, used)
                if owner is not None:
                    used[owner] += 1
                    settled.add(unit.item)
            if owner is not None and owner != REQUEST:
                low = max(low, owner)


def _ahead(owners: Sequence[int | None], last: int) -> list[int]:
    """Returns, for each unit, the owner of the next unit whose owner is known."""
    found: list[int] = []
    for owner in reversed(owners):
        found.append(last)
        if owner is not None and owner != REQUEST:
            last = owner
    return found[::-1]


def _collapsed(
    units: Sequence[Unit], owners: Sequence[int | None], evidence: Evidence
) -> Iterator[tuple[str, int | None]]:
    """Yields paths and owners: one per item if it has a single owner, else one per unit."""
    start = 0
    while start < len(units):
        end = start
        while end < len(units) and units[end].item == units[start].item:
            end += 1
        yield from _of_item(units[start:end], owners[start:end], evidence)
        start = end


def _of_item(
    units: Sequence[Unit], owners: Sequence[int | None], evidence: Evidence
) -> Iterator[tuple[str, int | None]]:
    known = [owner for owner in owners if owner is not None]
    if not known:
        yield units[0].item, None
        return
    last, settled = known[0], list[int | None]()
    for unit, owner in zip(units, owners, strict=True):
        last = last if owner is None else owner
        fits = owner is not None or evidence.may_hold(last, unit.kind)
        settled.append(last if fits else None)
    if len(set(settled)) == 1:
        yield units[0].item, settled[0]
        return
    yield from ((unit.path, owner) for unit, owner in zip(units, settled, strict=True))


def _index(path: str, name: str) -> tuple[int | None, str]:
    """Returns the index after a name at the start of a path, and the rest of the path."""
    if not path.startswith(f"{name}["):
        return None, path
    number, _, rest = path[len(name) + 1 :].partition("]")
    return (int(number) if number.isascii() and number.isdigit() else None), rest
