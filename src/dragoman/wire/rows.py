"""Rows: which field of the wire is which field of the model, stated once.

A *shape* is a wire object that the model has a class for; its rows are its fields. From them are
made a reader, a writer, and the residue: what of the object the writer would not restore by itself.
They are made as source code, which a debugger steps into and tracebacks show. Where a row can't say
it, it names a function of ours, a *hook*.

>>> from dragoman.model.parts import Text
>>> shape = Shape("some", "note", Text, Row("words", "text", is_required=True))
>>> shape.body(Text("Hi"), None)
{'type': 'note', 'words': 'Hi'}
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import UNSET

from dragoman.model.frozen import EMPTY
from dragoman.model.parts import Citation, Opaque, Part
from dragoman.model.tools import ToolDefinition
from dragoman.wire.overlay import overlay_of, with_overlay
from dragoman.wire.reading import Reading
from dragoman.wire.settings_table import flag, text, whole
from dragoman.wire.writing import Writing

OwnerT = TypeVar("OwnerT", bound=Part | Citation | ToolDefinition)


def mapping(value: Any) -> dict[str, Any] | None:
    """An object."""
    return value if isinstance(value, dict) else None


def anything(value: Any) -> Any:
    """Any value but null."""
    return value


_TESTS: dict[Callable[..., Any], str] = {
    text: "type(v) is str",
    flag: "type(v) is bool",
    whole: "type(v) is int and -(1 << 63) <= v < 1 << 63",
    mapping: "isinstance(v, dict)",
    anything: "v is not None",
}
"""Types of values that are read as they are."""
WHOLE = "*"
"""Stands for all fields of a shape, where the origin depends on one."""


class Row(NamedTuple):
    """A field of a wire object, and the field of the model that it stands for."""

    wire: str
    field: str
    """Empty: it stands for several, which its hook for reading gives by their names."""
    read: Callable[..., Any] = text
    """A type of values, or a hook: from the value and the `Reading`; None if it can't be read."""
    write: Callable[[Any, Any], Any] | None = None
    """A hook: from a value, not an empty one, and the `Writing`; None if there is none to write."""
    is_required: bool = False
    """Whether an object without it can't be read."""
    is_compared: bool = False
    """Whether it may be written differently than it came; the difference is kept."""
    takes_owner: bool = False
    """Whether the hook for writing takes the owner of the field."""
    delta: str = ""
    """The type of the deltas by which it grows in a stream, and `grows`, their field for that."""
    grows: str = ""


class Shape(Generic[OwnerT]):
    """A wire object that the model has a class for."""

    def __init__(
        self,
        dialect: str,
        tag: str | None,
        kind: type[OwnerT],
        *rows: Row,
        fixed: Mapping[str, Any] = EMPTY,
        origin: str = "",
        make: Callable[..., OwnerT] | None = None,
        allows: Callable[[Any, Writing], bool] | None = None,
    ) -> None:
        """Take what there is to say of it, and compile it.

        `tag` is its `type`, None if it has none or a row for it. `fixed` are fields of the model
        that are the same in all. `origin` is the field that only its own provider understands, `*`
        if that is all of it (I1, W71). `make` is a hook that makes it of the `Reading` and the
        fields; `allows` one that tells whether it may be written, and reports it if not.
        """
        self.dialect, self.tag, self.kind, self.rows = dialect, tag, kind, rows
        self.fixed, self.origin, self.make, self.allows = fixed, origin, make, allows
        self._required = [(n, row) for n, row in enumerate(rows) if row.is_required]
        self._optional = [(n, row) for n, row in enumerate(rows) if not row.is_required]
        self._known = sum(not row.is_compared for _, row in self._required) + (tag is not None)
        given = ("r", bool(make)), ("**fixed", bool(fixed)), ("origin=r.origin", origin == WHOLE)
        self._given = [argument for argument, is_needed in given if is_needed]

        def unread(wire: Any, reading: Reading) -> Opaque:
            return Opaque(dialect, wire, origin=reading.origin)

        names: dict[str, Any] = {
            "NAME": dialect, "EMPTY": EMPTY, "UNSET": UNSET, "fixed": dict(fixed),
            "make": make or kind, "allows": allows, "unread": unread, "rest": self._rest,
            "with_overlay": with_overlay,
            **{f"read{number}": row.read for number, row in enumerate(rows)},
            **{f"write{number}": row.write for number, row in enumerate(rows)},
        }  # fmt: skip
        lines = [*self._reader(), *self._writers(is_checked=allows is not None)]
        source = "\n".join(lines)
        name = f"<{dialect} {tag or kind.__name__} {next(_numbers)}>"
        linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
        exec(compile(source, name, "exec"), names)  # noqa: S102 - made of the rows alone
        self.read: Callable[[dict[str, Any], Reading], OwnerT | Opaque] = names["read"]
        """Read an object; one without a required field stays as it is."""
        self.body: Callable[[Any, Writing], dict[str, Any]] = names["body"]
        """Write the fields that have rows."""
        self.write: Callable[[Any, Writing], Any] = names["write"]
        """Write the whole object; `UNSET` if it is left out."""

    def _reader(self) -> Iterator[str]:
        """The source of `read`: of a wire object `w` and the reading `r`."""
        given = self._given.copy()
        yield "def read(w, r):"
        for number, row in self._required:
            yield from _read(number, row)
            yield f"    if not ({_test(row)}): return unread(w, r)"
            yield f"    v{number} = v"
            given.append(f"{row.field}=v{number}" if row.field else f"**v{number}")
        arguments = ", ".join(given)
        if not any(row.is_compared for _, row in self._required):
            yield f"    if len(w) == {self._known}: return make({arguments})"
        yield f"    n, found = {self._known}, {{}}"
        for number, row in self._optional:
            yield from _read(number, row)
            counted = "" if row.is_compared else "; n += 1"
            yield f"    if {_test(row)}: found[{row.field!r}] = v{counted}"
        if self.origin not in {"", WHOLE}:
            yield f"    if {self.origin!r} in found: found['origin'] = r.origin"
        yield f"    made = make({arguments}, **found)"
        yield "    return made if n == len(w) else rest(w, made, found)"

    def _body(self) -> Iterator[str]:
        """The source of the writer's rows, for a value `p` of the model and the writing `o`."""
        rows = list(enumerate(self.rows))
        head = [] if self.tag is None else [f"'type': {self.tag!r}"]
        while rows and rows[0][1].is_required:
            number, row = rows.pop(0)
            head.append(f"{row.wire!r}: {_written(number, row)}")
        yield f"    w = {{{', '.join(head)}}}"
        for number, row in rows:
            yield f"    v = {_written(number, row)}"
            condition = "" if row.is_required else "if v is not None: "
            yield f"    {condition}w[{row.wire!r}] = v"

    def _writers(self, *, is_checked: bool) -> Iterator[str]:
        """The source of `body` and `write`."""
        yield "def body(p, o):"
        yield from self._body()
        yield "    return w"
        yield "def write(p, o):"
        if is_checked:
            yield "    if not allows(p, o): return UNSET"
        yield from self._body()
        yield "    return w if p.extras is EMPTY else with_overlay(w, p.extras, NAME)"

    def _rest(self, wire: dict[str, Any], made: Any, found: dict[str, Any]) -> Any:
        """The value, with what of the wire object the writer would not restore by itself."""
        known, written = ["type"] if self.tag else [], dict[str, Any]()
        for row in self.rows:
            if not (row.is_required or row.field in found):
                continue
            if not row.is_compared or row.write is None:
                known.append(row.wire)
            else:
                value = made if row.takes_owner else getattr(made, row.field)
                written[row.wire] = row.write(value, None)
        extras = overlay_of(wire, known, self.dialect, written)
        return made.replace_unchecked(extras=extras) if extras else made


def _read(number: int, row: Row) -> Iterator[str]:
    yield f"    v = w.get({row.wire!r})"
    if row.read not in _TESTS:
        yield f"    if v is not None: v = read{number}(v, r)"


def _test(row: Row) -> str:
    return _TESTS.get(row.read, "v is not None")


def _written(number: int, row: Row) -> str:
    value = "p" if row.takes_owner else f"p.{row.field}"
    if row.write is None:
        return value
    written = f"write{number}({value}, o)"
    return written if row.is_required or row.takes_owner else f"{written} if {value} else None"


_numbers = count()
