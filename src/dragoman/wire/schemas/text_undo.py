"""Converts the JSON text of a compiled schema back to the original schema, while it streams.

The text is edited, not written anew: what the original schema has, too, stays as the model wrote
it. Little of it is held back: a property that goes if it is null until its value begins, an
enumerated string until it ends, the object of a union until only one alternative is left, and the
end of a value that the target's schema wraps, until the wrapper ends (cut off, it must not become
complete). Text that is not JSON stays as it is, from there on.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps, loads
from dragoman.model.validation.budget import TooManyStepsError
from dragoman.model.validation.problems import Validation
from dragoman.model.validation.words import kind_of

if TYPE_CHECKING:
    from dragoman.wire.schemas.undo import Plan

MAX_DEPTH = 150
"""Maximum nesting of values that are converted."""
_BLANK = re.compile(r"[ \t\n\r]*")
_PLAIN = re.compile(r'[^"\\]*')
_MARKS = frozenset(',:{}[]" \t\n\r')
_ATOM = re.compile(r"[^\s,:{}\[\]\"]*")
_FLAT = re.compile(r"[^\"{}\[\]]*")
_KINDS = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean", "n": "null"}
_NUMBERS = ("number", "integer")

Step = Generator[None, None, None]
"""A part of the parser: pauses when it needs more text."""


class _BrokenError(Exception):
    """The text is not JSON."""


class TextUndo:
    """Edits one text, given in pieces.

    `wrapped` is the property of the root that holds the value; None: the root is the value.
    `takes_objects`: a value that is no object is left alone, wrapper and all (arguments of calls).
    """

    def __init__(
        self, plan: Plan, schema: Any, wrapped: str | None, *, takes_objects: bool = False
    ) -> None:
        self._validation = Validation(schema)
        self._wrapped, self._takes_objects = wrapped, takes_objects
        self._text, self._at = "", 0
        self._out: list[str] = []
        self._held: list[str] = []
        """Text that was read, and isn't decided about yet."""
        self._is_holding = False
        self._end = ""
        """The end of a wrapped value, until the wrapper ends."""
        self._is_at_end = False
        self._steps = self._root(plan)

    def feed(self, piece: str) -> str:
        """The edited text that is certain with this piece."""
        self._text = self._text[self._at :] + piece
        self._at = 0
        next(self._steps)
        made = "".join(self._out)
        self._out.clear()
        return made

    def close(self) -> str:
        """The rest, if the text ends here."""
        rest = "" if self._is_at_end else self._end + self._claimed() + self._text[self._at :]
        self._text, self._at, self._end = "", 0, ""
        self._held.clear()
        return rest

    # --- text that was read

    def _take(self, end: int) -> None:
        piece = self._text[self._at : end]
        self._at = end
        if piece:
            self._put(piece)

    def _put(self, piece: str) -> None:
        if self._is_holding:
            self._held.append(piece)
        else:
            self._out.append(piece)

    def _claimed(self) -> str:
        """What was held, which is held no longer."""
        text = "".join(self._held)
        self._held.clear()
        self._is_holding = False
        return text

    def _read_since(self, place: int) -> Any:
        """The value of what was held since then."""
        try:
            return loads("".join(self._held[place:]))
        except InvalidInputError:
            raise _BrokenError from None

    def _read_again(self, text: str) -> None:
        self._text = text + self._text[self._at :]
        self._at = 0

    # --- tokens

    def _passed(self, pattern: re.Pattern[str]) -> Step:
        """Take all that matches, up to the next character, which doesn't."""
        while True:
            found = pattern.match(self._text, self._at)
            self._take(self._at if found is None else found.end())
            if self._at < len(self._text):
                return
            yield

    def _blank(self) -> Step:
        yield from self._passed(_BLANK)

    @property
    def _next(self) -> str:
        return self._text[self._at]

    def _expect(self, char: str) -> Step:
        yield from self._blank()
        if self._next != char:
            raise _BrokenError
        self._take(self._at + 1)

    def _string(self) -> Step:
        self._take(self._at + 1)
        while True:
            yield from self._passed(_PLAIN)
            if self._next == '"':
                self._take(self._at + 1)
                return
            while len(self._text) < self._at + 2:
                yield
            self._take(self._at + 2)

    def _atom(self) -> Step:
        """Take a number or a literal, which ends where something else begins."""
        if self._next in _MARKS:
            raise _BrokenError
        yield from self._passed(_ATOM)

    def _pass(self) -> Step:
        """Take a value as it is."""
        if self._next == '"':
            yield from self._string()
        elif self._next not in "{[":
            yield from self._atom()
        else:
            depth = 0
            while True:
                yield from self._passed(_FLAT)
                if self._next == '"':
                    yield from self._string()
                    continue
                depth += 1 if self._next in "{[" else -1
                self._take(self._at + 1)
                if not depth:
                    return

    # --- values

    def _root(self, plan: Plan) -> Step:
        try:
            yield from self._opened(plan)
        except (_BrokenError, RecursionError, TooManyStepsError):
            self._out.append(self._end + self._claimed())
            self._end, self._is_at_end = "", False
        while True:
            self._take(len(self._text))
            yield

    def _opened(self, plan: Plan) -> Step:
        self._is_holding = True
        yield from self._blank()
        if self._next != "{" and (self._takes_objects or self._wrapped is not None):
            raise _BrokenError
        if self._wrapped is None:
            self._out.append(self._claimed())
            yield from self._value(plan, 0)
            return
        self._take(self._at + 1)
        yield from self._blank()
        if self._next != '"':
            raise _BrokenError
        before = len(self._held)
        yield from self._string()
        if self._read_since(before) != self._wrapped:
            raise _BrokenError
        yield from self._expect(":")
        yield from self._blank()
        if self._takes_objects and self._next != "{":
            raise _BrokenError
        if self._next in '"{[':
            self._claimed()
            for _ in self._value(plan, 0):
                self._keep_end()
                yield
            self._keep_end()
            end, self._is_at_end, self._is_holding = self._end, True, True
        else:  # a number or a literal doesn't tell whether it has ended
            before = len(self._held)
            yield from self._pass()
            end = "".join(self._held[before:])
        yield from self._rest_of_wrapper()
        self._claimed()
        self._out.append(end)
        self._end, self._is_at_end = "", False

    def _rest_of_wrapper(self) -> Step:
        yield from self._blank()
        while self._next != "}":
            yield from self._expect(",")
            yield from self._blank()
            yield from self._name()
            yield from self._pass()
            yield from self._blank()
        self._take(self._at + 1)

    def _keep_end(self) -> None:
        """Keep the last character of the text that is certain."""
        made = self._end + "".join(self._out)
        self._out[:] = [made[:-1]]
        self._end = made[-1:]

    def _value(self, plan: Plan, depth: int) -> Step:
        while plan.same is not None and depth < MAX_DEPTH:  # it may be circular
            plan, depth = plan.same, depth + 1
        if depth < MAX_DEPTH and plan.branches:
            chosen = yield from self._branch(plan)
            if chosen is not None:
                yield from self._value(chosen, depth + 1)
                return
        start = self._next
        if depth >= MAX_DEPTH:
            yield from self._pass()
        elif start == '"' and plan.choices:
            yield from self._choice(plan)
        elif start == "{" and (plan.members or plan.nulls or plan.rest):
            yield from self._object(plan, depth + 1)
        elif start == "[" and (plan.items is not None or plan.prefix):
            yield from self._array(plan, depth + 1)
        else:
            yield from self._pass()

    def _choice(self, plan: Plan) -> Step:
        """A string, which may stand for another value."""
        self._is_holding = True
        yield from self._string()
        said = self._read_since(0)
        text, meant = self._claimed(), plan.choices.get(said, said)
        self._put(text if meant is said else dumps(meant).decode("utf-8"))

    def _array(self, plan: Plan, depth: int) -> Step:
        self._take(self._at + 1)
        yield from self._blank()
        number = 0
        while self._next != "]":
            if number:
                yield from self._expect(",")
                yield from self._blank()
            inner = plan.prefix[number] if number < len(plan.prefix) else plan.items
            yield from self._pass() if inner is None else self._value(inner, depth)
            yield from self._blank()
            number += 1
        self._take(self._at + 1)

    def _object(self, plan: Plan, depth: int) -> Step:
        self._take(self._at + 1)
        lead: str | None = None  # the white space before the first member
        is_first = True  # of those that stay
        while True:
            self._is_holding = True
            yield from self._blank()
            if self._next == "}":
                break
            if lead is None:
                lead = "".join(self._held)
            else:
                yield from self._expect(",")
                yield from self._blank()
            before = len(self._held)
            name, is_null = yield from self._key(plan)
            if is_first and not is_null:
                self._held[:before] = [lead]
            text = self._claimed()
            if not is_null:
                self._put(text)
                is_first = False
                inner = plan.members.get(name, plan.rest)
                yield from self._pass() if inner is None else self._value(inner, depth)
        self._put(self._claimed())
        self._take(self._at + 1)

    def _key(self, plan: Plan) -> Generator[None, None, tuple[str, bool]]:
        """Take a member up to its value: its name, and whether it is a null to remove.

        The value is taken, too, if it is a null that may have to be removed.
        """
        name = yield from self._name()
        if name not in plan.nulls or self._next != "n":
            return name, False
        before = len(self._held)
        yield from self._atom()
        self._read_since(before)  # or it is no JSON
        return name, True

    def _name(self) -> Generator[None, None, str]:
        """Take a member up to its value."""
        if self._next != '"':
            raise _BrokenError
        before = len(self._held)
        yield from self._string()
        name: str = self._read_since(before)
        yield from self._expect(":")
        yield from self._blank()
        return name

    # --- alternatives

    def _branch(self, plan: Plan) -> Generator[None, None, Plan | None]:
        """The alternative that fits a value; None if none does."""
        kind = _KINDS.get(self._next, "number")
        left = [(schema, branch) for schema, branch in plan.branches if self._allows(schema, kind)]
        if len(left) > 1 and not all(branch.is_idle for _, branch in left):
            left = yield from self._fitting(left, kind)
        return left[0][1] if left else None

    def _fitting(
        self, left: list[tuple[Any, Plan]], kind: str
    ) -> Generator[None, None, list[tuple[Any, Plan]]]:
        """The alternatives that fit the value, which is read as far as that takes."""
        was_holding, self._is_holding = self._is_holding, True
        if kind == "object":
            left = yield from self._by_members(left)
        else:
            yield from self._pass()
        if len(left) > 1:
            left = self._holding(left, self._read_since(0))
        self._read_again(self._claimed())
        self._is_holding = was_holding
        return left

    def _by_members(
        self, left: list[tuple[Any, Plan]]
    ) -> Generator[None, None, list[tuple[Any, Plan]]]:
        """The alternatives that no member of the object excludes."""
        self._take(self._at + 1)
        yield from self._blank()
        while self._next != "}" and len(left) > 1:
            if self._next == ",":
                self._take(self._at + 1)
                yield from self._blank()
            name = yield from self._name()
            before = len(self._held)
            yield from self._pass()
            value = self._read_since(before)
            left = [each for each in left if self._admits(each[0], name, value)]
            yield from self._blank()
        if self._next == "}" and len(left) > 1:
            self._take(self._at + 1)
        return left

    def _holding(self, left: list[tuple[Any, Plan]], value: Any) -> list[tuple[Any, Plan]]:
        return [each for each in left if self._validation.holds(each[0], value)][:1]

    def _allows(self, schema: Any, kind: str) -> bool:
        """Whether a schema may allow values of a kind."""
        node = self._resolved(schema)
        kinds = node.get("type")
        if kinds is None and isinstance(listed := node.get("enum"), (list, tuple)):
            kinds = [kind_of(value) for value in listed]
        if isinstance(kinds, str):
            kinds = [kinds]
        if not isinstance(kinds, (list, tuple)) or (kind == "null" and node.get("nullable")):
            return True
        return kind in kinds or (kind == "number" and "integer" in kinds)

    def _admits(self, schema: Any, name: str, value: Any) -> bool:
        """Whether an object of this schema may have such a member."""
        node = self._resolved(schema)
        members = node.get("properties")
        if isinstance(members, Mapping) and name in members:
            return self._validation.holds(members[name], value)
        return node.get("additionalProperties") is not False

    def _resolved(self, schema: Any) -> Mapping[str, Any]:
        for _ in range(MAX_DEPTH):
            if not isinstance(schema, Mapping) or not isinstance(schema.get("$ref"), str):
                break
            schema = self._validation.target(schema["$ref"])
        return schema if isinstance(schema, Mapping) else {}


class TextUndos:
    """Edits one text by several schemas, one after the other."""

    def __init__(self, each: Iterable[TextUndo]) -> None:
        self._each = tuple(each)

    def feed(self, piece: str) -> str:
        """The edited text that is certain with this piece."""
        for each in self._each:
            piece = each.feed(piece)
        return piece

    def close(self) -> str:
        """The rest, if the text ends here."""
        rest = ""
        for each in self._each:
            rest = each.feed(rest) + each.close()
        return rest
