"""Rows: which field of the wire is which field of the model, stated once.

A *row* is a fact: a wire field, a model field, the type of its values, how it grows in a stream. A
*shape* is a wire object with its rows; a *union* is what may stand in one place. Made from them:

- `shape.read(wire, reading)`: the value; an `Opaque` if a required field is missing or odd.
- `shape.write(part, writing)`: the object; `UNSET` if it is left out (`allows` says why). `body` is
  the same without the overlay and without asking.
- the residue: what of an object the writer would not restore by itself, kept in `extras`. A row
  whose values are written as they came (`Value.exact`) is only counted; one that is written
  differently is written and compared; anything else is left to `overlay_of`.
- `Union.unsupported`: the fields of the model that no row has; `growing`: the rows that grow in a
  stream (see `folding`); `misfits`: what is of another type than a row says; `reference`: the
  rows as a table.

The functions are compiled when they are first used, from source that a debugger steps into and
tracebacks show. `tests/wire/rows_twin.py` is the same, interpreted; a property test compares both.

Where a row can't say it, it names a function of ours, a *hook*; there is at most one of a kind per
shape. A fact that needs three hooks is code.

>>> from dragoman.model.parts import Text
>>> shape = Shape("some", "note", Text, Row("words", "text", is_required=True))
>>> shape.body(Text("Hi"), None)
{'type': 'note', 'words': 'Hi'}
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import NODEFAULT, UNSET
from msgspec.structs import fields as fields_of_struct

from dragoman.model.frozen import EMPTY, FrozenDict
from dragoman.model.parts import Opaque
from dragoman.wire.overlay import (
    Overlay,
    are_same,
    extras_of,
    merged,
    overlay_of,
    with_note,
    with_overlay,
)

OwnerT = TypeVar("OwnerT")
Reader = Callable[[dict[str, Any], Any], Any]
Writer = Callable[[Any, Any], Any]


# --- types of values


class Value(NamedTuple):
    """A type of value: a test in source form, and how it is read and written if not as it is."""

    test: str
    """Of `v`; it never raises, and null fails it."""
    read: Callable[..., Any] | None = None
    """From the value on the wire; None if it can't be read."""
    write: Callable[..., Any] | None = None
    """From the value of the model; None if it can't be written."""
    about: str = ""
    """For people."""
    exact: bool = False
    """Whether what was read is written as it came, although there are hooks."""

    @property
    def is_exact(self) -> bool:
        """Whether what was read is written as it came."""
        return self.exact or self.write is None

    @property
    def passes(self) -> Callable[[Any], bool]:
        """The test as a function."""
        found = _PASSES.get(self.test)
        if found is None:
            found = _PASSES[self.test] = eval(f"lambda v: {self.test}", {})  # noqa: S307 - ours
        return found


_PASSES: dict[str, Callable[[Any], bool]] = {}
TEXT = Value("type(v) is str", about="a string")
FLAG = Value("type(v) is bool", about="true or false")
WHOLE = Value("type(v) is int and -(1 << 63) <= v < 1 << 63", about="an integer")
NUMBER = Value(f"type(v) is float or ({WHOLE.test})", about="a number")
OBJECT = Value("isinstance(v, dict)", about="an object")
LIST = Value("isinstance(v, list)", about="a list")
ANY = Value("v is not None", about="anything")
TEXTS = Value("isinstance(v, list) and all(type(i) is str for i in v)", tuple, list,
              "a list of strings", exact=True)  # fmt: skip


def words(*same: str, **named: str) -> Value:
    """An enumeration: words that both have, and `wire="model"`.

    >>> word = words("auto", standard_only="standard")
    >>> word.read("standard_only"), word.write("standard"), word.read("other")
    ('standard', 'standard_only', None)
    """
    ours = {word: word for word in same} | named
    theirs: dict[str, str] = {}
    for key, value in ours.items():
        theirs.setdefault(value, key)
    exact = len(theirs) == len(ours)
    return Value("type(v) is str", ours.get, theirs.get, f"one of {', '.join(ours)}", exact)


def one_of(**forms: Mapping[str, str]) -> Value:
    """An object that its `type` tells apart, for fields of the owner: `url={"url": "url"}`.

    It is written in the first form whose fields all have a value.
    """

    def read(wire: Any) -> dict[str, Any] | None:
        form = forms.get(wire["type"]) if type(wire.get("type")) is str else None
        if form is None:
            return None
        found = {ours: wire.get(theirs) for theirs, ours in form.items()}
        return found if all(type(value) is str for value in found.values()) else None

    def write(owner: Any) -> dict[str, Any] | None:
        for tag, form in forms.items():
            values = {theirs: getattr(owner, ours) for theirs, ours in form.items()}
            if all(value is not None for value in values.values()):
                return {"type": tag, **values}
        return None

    return Value(OBJECT.test, read, write, f"one of {', '.join(forms)}")


# --- rows


class Row(NamedTuple):
    """A field of a wire object, and the field of the model that it stands for."""

    wire: str
    """`source.data` is a field of an object inside."""
    field: str
    """Empty: several fields, which its reader gives by name; its writer is given the owner."""
    value: Value = TEXT
    is_required: bool = False
    """Whether an object without it can't be read; it is always written."""
    grows: str = ""
    """`delta type.delta field`, for a field that streams in pieces."""
    is_last: bool = False
    """Whether its pieces are sent just before the end."""
    always: bool = False
    """Whether it is written even if the model has no value."""
    reports: bool = False
    """Whether its writer is given the writing too, and reports its losses itself."""
    deep: bool = False
    """Whether its reader is given the reading too, and its writer the writing."""
    takes_owner: bool = False
    """Whether its writer is given the owner of the field."""
    strict: bool = False
    """For settings: whether it is only read if it would be written as it came."""


class Shape(Generic[OwnerT]):
    """A wire object that the model has a class for.

    It is recognised by its `type` (`tag`), or by a key that it has (`key`, see `KeyUnion`).
    """

    def __init__(  # noqa: PLR0913 - a shape says a lot about itself, by name
        self,
        dialect: str,
        tag: str | None,
        kind: type[OwnerT],
        *rows: Row,
        make: Callable[..., OwnerT | None] | None = None,
        allows: Callable[[Any, Any], str | None] | None = None,
        reads: Reader | None = None,
        writes: Callable[[Any, dict[str, Any], Any], Any] | None = None,
        fits: Callable[[Any], bool] | None = None,
        given: Mapping[str, str] = EMPTY,
        tag_field: str = "",
        keeps_origin: bool | str = False,
        fields: Iterable[str] = (),
        usual: Mapping[str, Any] = EMPTY,
        usual_if: str = "",
        rest: str = "",
        twins: bool = False,
        key: str = "",
    ) -> None:
        """Take what there is to say of it.

        Hooks: `make` makes it of its fields, by default the class does; None if it refuses.
        `allows` says why it is left out, or None. `reads` is called by a union instead of `read`;
        `writes` may change the written object, before the overlay. `fits` tells which values of its
        class it writes, where another shape writes the others.

        `given` are more fields, as source of `w` and `r` (`{"item_id": "r.item_id"}`); `tag_field`
        takes the tag; `keeps_origin` gives it the origin of the reading, if it has that field. No
        row is about `fields`, and yet they are written or reported. `usual` are fields that are
        always as given, or at least with a value of the field `usual_if`. `rest` takes all other
        fields of the wire. With `twins`, names may be in snake case on the wire.
        """
        self.dialect, self.tag, self.kind, self.rows, self.key = dialect, tag, kind, rows, key
        self.make, self.allows, self.reads, self.writes = make, allows, reads, writes
        self.fits, self.tag_field, self.keeps_origin = fits, tag_field, keeps_origin
        self.fields, self.rest = frozenset(fields), rest
        self.usual, self.usual_if = usual, usual_if
        self.given = dict(given) | ({"origin": "r.origin"} if keeps_origin is True else {})
        self.names = _twins_of(rows) if twins else {}

    # --- what is compiled

    @cached_property
    def read(self) -> Callable[[dict[str, Any], Any], OwnerT | Opaque]:
        """Read an object; one without a required field stays as it is."""
        found: Callable[[dict[str, Any], Any], OwnerT | Opaque]
        found = self._compiled("read", self._reader())
        return found

    @cached_property
    def body(self) -> Callable[[Any, Any], dict[str, Any]]:
        """Write the fields that have rows."""
        found: Callable[[Any, Any], dict[str, Any]]
        found = self._compiled("body", self._writer("body"))
        return found

    @cached_property
    def write(self) -> Writer:
        """Write the whole object; `UNSET` if it is left out."""
        found: Writer = self._compiled("write", self._writer("write"))
        return found

    def _compiled(self, what: str, lines: Iterable[str]) -> Any:
        names: dict[str, Any] = {
            "NAME": self.dialect, "EMPTY": EMPTY, "NONE": {}, "SILENT": SILENT, "shape": self,
            "make": self.make or self.kind, "usual": dict(self.usual), "same": are_same,
            "with_overlay": with_overlay, "allows": self.allows, "writes": self.writes,
            "own": {row.wire for row in self.rows} | {*self.usual, "type"},
            "known": {row.wire for row in self.rows} | {*self.usual, *["type"] * bool(self.tag)},
            "names": {path: names.keys() for path, names in self.names.items()},
        }  # fmt: skip
        for number, row in enumerate(self.rows):
            names[f"read{number}"], names[f"write{number}"] = row.value.read, row.value.write
            names[f"unset{number}"] = self._default(row)
        return compiled(f"{self.dialect} {self.tag or self.key or self.kind.__name__}", what, lines,
                        names)  # fmt: skip

    def _default(self, row: Row) -> Any:
        """The value of the model that stands for none."""
        return _defaults(self.kind).get(row.field)

    @cached_property
    def _groups(self) -> dict[str, tuple[str, bool]]:
        """The objects that rows reach into: the variable of each, and whether it is required."""
        outer = [row.wire.rpartition(".")[0] for row in self.rows]
        must = {name for name, row in zip(outer, self.rows, strict=True) if row.is_required}
        found = [name for name in dict.fromkeys(outer) if name]
        return {name: (f"b{n}", name in must or name == self.key) for n, name in enumerate(found)}

    def _reader(self) -> Iterator[str]:
        """The source of `read`: of a wire object `w` and the reading `r`."""
        given = [f"{self.tag_field}={self.tag!r}"] if self.tag_field else []
        given += [f"{name}={source}" for name, source in self.given.items()]
        rows = list(enumerate(self.rows))
        needed = [(number, row) for number, row in rows if row.is_required]
        optional = [(number, row) for number, row in rows if not row.is_required]
        known = (self.tag is not None) + sum(row.value.is_exact for _, row in needed)
        known += sum(must for _, must in self._groups.values())
        size = " + ".join(["len(w)", *(f"len({var})" for var, _ in self._groups.values())])
        yield f"def read(w, r{', is_ours=False' if self.names else ''}):"
        yield from self._inside()
        for number, row in needed:
            yield from self._required(number, row)
            given.append(f"{row.field}=v{number}" if row.field else f"**v{number}")
        if self._is_often_bare(needed, optional):
            yield f"    if {size} == {known}: return make({', '.join(given)})"
        inside = [f"(len({var}) > 0)" for var, must in self._groups.values() if not must]
        yield f"    n, x, f = {' + '.join([str(known), *inside])}, False, {{}}"
        for number, row in optional:
            yield from self._optional(number, row)
        yield from self._usual()
        if self.rest:
            yield f"    f[{self.rest!r}] = v = {{k: w[k] for k in w if k not in own}}"
            yield "    n += len(v)"
        if isinstance(self.keeps_origin, str):
            yield f"    if {self.keeps_origin!r} in f: f['origin'] = r.origin"
        yield f"    made = make({', '.join([*given, '**f'])})"
        if self.make is not None:
            yield "    if made is None: return shape.unread(w, r)"
        for number, row in rows:
            if not row.value.is_exact:
                yield f"    n += {self._is_restored(number, row)}"
        yield f"    if n == {size} and not x: return made"
        if not self._groups:
            yield "    more = {k: v for k, v in w.items() if v is None or k not in known}"
            yield "    if n + len(more) == len(w) and not x: return shape.beside(made, more)"
        yield "    return shape.kept(made, w, r)"

    def _inside(self) -> Iterator[str]:
        """The source that takes the objects that rows reach into, unless they are renamed."""
        other = "    if not is_ours and not names[{!r}].isdisjoint({}): return shape.renamed(w, r)"
        if "" in self.names:
            yield other.format("", "w")
        for name, (var, must) in self._groups.items():
            yield f"    {var} = w.get({name!r})"
            odd = "return shape.unread(w, r)" if must else f"{var} = NONE"
            yield f"    if not isinstance({var}, dict): {odd}"
            if name in self.names:
                yield other.format(name, var)

    def _is_often_bare(self, needed: list[Any], optional: list[Any]) -> bool:
        """Whether an object with nothing but what is required is read and written exactly."""
        is_plain = not self.rest and all(row.value.is_exact for _, row in needed)
        is_free = self._is_usual("r") in {"", f"{self.usual_if!r} in f"}
        return is_plain and is_free and not any(row.always for _, row in optional)

    def _required(self, number: int, row: Row) -> Iterator[str]:
        """The source that reads a required field."""
        yield f"    v{number} = v = {self._taken(row)}"
        yield f"    if not ({row.value.test}): return shape.unread(w, r)"
        if row.value.read is not None:
            yield f"    v{number} = read{number}(v{', r' if row.deep else ''})"
            yield f"    if v{number} is None: return shape.unread(w, r)"

    def _optional(self, number: int, row: Row) -> Iterator[str]:
        """The source that reads an optional field."""
        if not row.value.is_exact:
            yield f"    u{number} = None"
        yield f"    v = {self._taken(row)}"
        yield f"    if {row.value.test}:"
        pad, value = "        ", "v"
        if row.value.read is not None:
            yield f"        m = read{number}(v{', r' if row.deep else ''})"
            yield "        if m is not None:"
            pad, value = pad + "    ", "m"
        put = f"f[{row.field!r}] = {value}" if row.field else f"f.update({value})"
        is_written = self._default(row) is None or row.always  # or unless it has its default
        counted = "n += 1" if is_written else f"n += {value} != unset{number}"
        yield f"{pad}{put}; {counted if row.value.is_exact else f'u{number} = v'}"
        if row.always:
            yield "    else: x = True"

    def _taken(self, row: Row) -> str:
        outer, _, inner = row.wire.rpartition(".")
        return f"{self._groups[outer][0] if outer else 'w'}.get({inner!r})"

    def _is_restored(self, number: int, row: Row) -> str:
        """The source that tells whether a field that was read would be written as it came."""
        owner = "made" if row.takes_owner or not row.field else f"made.{row.field}"
        written = f"write{number}({owner}{', SILENT' if row.deep or row.reports else ''})"
        if row.is_required:
            return f"((m := {written}) is (v := {self._taken(row)}) or same(m, v))"
        is_same = f"((m := {written}) is u{number} or same(m, u{number}))"
        if row.field and self._default(row) is not None and not row.always:
            is_same = f"made.{row.field} != unset{number} and {is_same}"  # a default isn't written
        return f"(u{number} is not None and {is_same})"

    def _usual(self) -> Iterator[str]:
        """The source that looks for the usual fields."""
        if condition := self._is_usual("r"):
            yield f"    if {condition}:"
        for key, value in self.usual.items():
            field = next((row.field for row in self.rows if row.wire == key), None)
            yield f"        if {f'{field!r} in f' if field else 'False'}: pass"
            known = f"w.get({key!r})"
            test = f"{known} == {value!r}" if type(value) is str else f"same({known}, {value!r})"
            yield f"        elif {test}: n += 1"
            yield "        else: x = True"

    def _is_usual(self, owner: str) -> str:
        """The condition under which there are the usual fields, as source; empty: never."""
        if not self.usual or not self.usual_if:
            return "True" if self.usual else ""
        if owner == "p":
            return f"p.{self.usual_if} is not None"
        source = self.given.get(self.usual_if)
        return f"{source} is not None" if source else f"{self.usual_if!r} in f"

    def _writer(self, name: str) -> Iterator[str]:
        """The source of `write` or `body`, for a value `p` of the model and the writing `o`."""
        yield f"def {name}(p, o):"
        if self.allows is not None and name == "write":
            yield "    no = allows(p, o)"
            yield "    if no is not None: return o.leave_out(no)"
        heads = {"": [] if self.tag is None else [f"'type': {self.tag!r}"]}
        heads |= {outer: [] for outer in self._groups}
        later: list[str] = []
        for number, row in enumerate(self.rows):
            outer, _, inner = row.wire.rpartition(".")
            source = "p" if row.takes_owner or not row.field else f"p.{row.field}"
            call = f"write{number}({{}}{', o' if row.deep or row.reports else ''})"
            if row.is_required or row.always:
                value = source if row.value.write is None else call.format(source)
                heads[outer].append(f"{inner!r}: {value}")
                continue
            place = f"w[{inner!r}]" if not outer else f"{self._groups[outer][0]}[{inner!r}]"
            if outer and not self._groups[outer][1]:
                place = f"w.setdefault({outer!r}, {{}})[{inner!r}]"
            later += self._later(number, row, source, call.format("v"), place)
        for outer, (var, must) in self._groups.items():
            if must:
                yield f"    {var} = {{{', '.join(heads[outer])}}}"
                heads[""].append(f"{outer!r}: {var}")
        yield f"    w = {{{', '.join(heads[''])}}}"
        if condition := self._is_usual("p"):
            yield f"    if {condition}: w.update(usual)"
        yield from later
        if self.rest:
            yield f"    for k, v in p.{self.rest}.items(): w.setdefault(k, v)"
        if self.writes is not None:
            yield "    w = writes(p, w, o)"
        last = (
            "w" if name == "body" else "w if p.extras is EMPTY else with_overlay(w, p.extras, NAME)"
        )
        yield f"    return {last}"

    def _later(self, number: int, row: Row, source: str, call: str, place: str) -> Iterator[str]:
        """The source that writes an optional field."""
        yield f"    v = {source}"
        test = (
            "v is not None"
            if self._default(row) is None
            else f"v is not None and v != unset{number}"
        )
        if row.value.write is None:
            yield f"    if {test}: {place} = v"
            return
        is_owner = source == "p"
        if not is_owner:
            yield f"    if {test}:"
        pad = "    " if is_owner else "        "
        yield f"{pad}m = {call}"
        yield f"{pad}if m is not None: {place} = m"
        if not (is_owner or row.reports or row.deep):
            yield f"{pad}else: o.lose_field({row.field!r}, 'this value is not supported')"

    # --- the slow ways

    def unread(self, wire: dict[str, Any], reading: Any) -> Opaque:
        """What the rows can't read is kept whole."""
        return Opaque(self.dialect, wire, origin=reading.origin)

    def renamed(self, wire: dict[str, Any], reading: Any) -> OwnerT | Opaque:
        """Read an object whose names are spelled differently."""
        known, names = self._renamed(wire)
        read: Any = self.read
        made = read(known, reading, is_ours=True)
        if type(made) is Opaque:
            return self.unread(wire, reading)
        extras = with_note(made.extras, self.dialect, "names", names) if names else made.extras
        renamed: OwnerT = made.replace_unchecked(extras=extras)
        return renamed

    def kept(self, made: Any, wire: dict[str, Any], reading: Any) -> Any:
        """The value with what of the wire the writer would not restore by itself."""
        if made is None:
            return self.unread(wire, reading)
        return _noted(made, overlay_of(wire, (), self.dialect, self.body(made, SILENT)))

    def beside(self, made: Any, more: dict[str, Any]) -> Any:
        """The value with fields that have no row, or null."""
        return _noted(made, extras_of(more, self.dialect))

    def _renamed(self, wire: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
        overlay = Overlay(self.dialect)
        wire = overlay.renamed(wire, self.names.get("", EMPTY))
        for path, names in self.names.items():
            if path and isinstance(inner := wire.get(path), dict):
                wire = {**wire, path: overlay.renamed(inner, names, path)}
        return wire, overlay.spelling.get("names", [])

    # --- what is derived

    @property
    def unsupported(self) -> list[str]:
        """The fields of the model that it can't say."""
        known = {row.field for row in self.rows} | self.fields | self.given.keys() | _APART
        known |= {self.tag_field, self.rest}
        return [name for name in _defaults(self.kind) if name not in known]

    def misfits(self, wire: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The fields that are of another type than their rows say, and what they should be."""
        yield from misfits(self.rows, wire)

    def reference(self) -> Iterator[tuple[str, str, str]]:
        """The rows for people: wire field, model field, type."""
        for row in self.rows:
            named = f"{self.kind.__name__}.{row.field or '…'}"
            yield f"{self.tag or self.key}.{row.wire}".lstrip("."), named, row.value.about


def misfits(rows: Iterable[Row], wire: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The fields that are of another type than their rows say, and what they should be."""
    for row in rows:
        value: Any = wire
        for step in row.wire.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        value = list(value) if isinstance(value, tuple) else value
        if (value is not None or row.is_required) and not row.value.passes(value):
            yield row.wire, f"must be {row.value.about}"


def _noted(made: Any, extras: FrozenDict) -> Any:
    """The value with more extras, beside those that its maker noted."""
    if not extras:
        return made
    found = extras if made.extras is EMPTY else merged(made.extras, extras)
    return made.replace_unchecked(extras=found)


_APART = frozenset({"origin", "extras", "item_id", "type"})
"""Fields of parts that no row is about."""


def compiled(name: str, what: str, lines: Iterable[str], names: dict[str, Any]) -> Any:
    """A function made of source that debuggers and tracebacks show."""
    source = "\n".join(lines)
    file = f"<{name} {what} {next(_numbers)}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), names)  # noqa: S102 - made of the rows alone
    return names[what]


_numbers = count()


def _defaults(kind: type[Any]) -> dict[str, Any]:
    """The fields of a class, and what they are if nothing is said."""
    found = _DEFAULTS.get(kind)
    if found is None:
        every = fields_of_struct(kind)
        found = _DEFAULTS[kind] = {
            each.name: None if each.default is UNSET or each.default is NODEFAULT else each.default
            for each in every
        }
    return found


_DEFAULTS: dict[type, dict[str, Any]] = {}


def snake(name: str) -> str:
    """A name of the wire in snake case."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _twins_of(rows: Iterable[Row]) -> dict[str, dict[str, str]]:
    """The other spelling of names, by the path of their object."""
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        *outer, inner = row.wire.split(".")
        for path, name in [("", each) for each in outer] + [(".".join(outer), inner)]:
            if (twin := snake(name)) != name:
                found.setdefault(path, {})[twin] = name
    return found


class _Silent:
    """The writing of nobody: it takes no reports, and everything it writes is its own."""

    origin = item = item_id = None
    is_response = True
    part = message = 0

    @property
    def wire_ids(self) -> dict[str, Any]:
        """Those that nobody looks up."""
        return {}

    def __setattr__(self, name: str, value: Any) -> None:
        """It has no place."""

    def lose_here(self, *_: Any) -> None:
        """Not reported."""

    lose = lose_field = repair = repair_here = lose_here

    def leave_out(self, _reason: str) -> Any:
        """Not reported."""
        return UNSET

    def is_own(self, _part: Any) -> bool:
        """It is."""
        return True

    def is_foreign(self, _part: Any) -> bool:
        """It is not."""
        return False


SILENT: Any = _Silent()
"""For writing what was read, to see what is left."""


# --- unions

_NO_WRITERS: Mapping[type, Writer] = {}


class Growth(NamedTuple):
    """A row that streams in pieces: the type of its deltas, and their field for it."""

    shape: Shape[Any]
    row: Row
    delta: str
    field: str


class Union:
    """Objects that are told apart by their `type`, or by the class of their value.

    >>> from dragoman.model.parts import Text
    >>> shape = Shape("some", "note", Text, Row("words", "text", is_required=True))
    >>> Union("some", shape).read({"type": "note", "words": "Hi"}, None).text
    'Hi'
    """

    def __init__(
        self,
        dialect: str,
        *shapes: Shape[Any],
        writers: Mapping[type, Writer] = _NO_WRITERS,
        other: Callable[[str], Shape[Any] | None] = lambda _tag: None,
    ) -> None:
        """Take the shapes. `writers` are hooks for classes without one, `other` for other tags."""
        self.dialect, self.shapes, self.other = dialect, shapes, other
        self.by_tag: dict[str | None, Shape[Any]] = {shape.tag: shape for shape in shapes}
        self.by_kind: dict[type, Writer] = dict(writers)
        for kind in dict.fromkeys(shape.kind for shape in shapes):
            if kind not in self.by_kind:
                self.by_kind[kind] = self._writer_of(kind)

    def shape_of(self, wire: Any) -> Shape[Any] | None:
        """The shape of a wire object."""
        tag = wire.get("type") if isinstance(wire, dict) else None
        return (self.by_tag.get(tag) or self.other(tag)) if type(tag) is str else None

    def shape_for(self, value: Any) -> Shape[Any] | None:
        """The shape that a value is written with."""
        return next((s for s in self.shapes if s.kind is type(value) and _fits(s, value)), None)

    def read(self, wire: Any, reading: Any) -> Any:
        """Read an object; one without a shape stays as it is."""
        shape = self.shape_of(wire)
        if shape is None:
            return Opaque(self.dialect, wire, origin=reading.origin)
        return (shape.reads or shape.read)(wire, reading)

    def write(self, value: Any, writing: Any) -> Any:
        """Write a value; `UNSET` if it is left out."""
        write = self.by_kind.get(type(value))
        if write is not None:
            return write(value, writing)
        for kind in type(value).__mro__:
            if kind in self.by_kind:
                return self.by_kind[kind](value, writing)
            if kind is Opaque and value.dialect == self.dialect:
                return value.payload
        if isinstance(value, Opaque):
            return writing.leave_out("a part that only another dialect understands is left out")
        return writing.leave_out(f"{type(value).__name__.lower()} is not supported")

    def _writer_of(self, kind: type) -> Writer:
        """What writes the values of a class that has shapes."""
        mine = [each for each in self.shapes if each.kind is kind]

        def only(value: Any, writing: Any) -> Any:
            self.by_kind[kind] = mine[0].write  # not before it is needed: it is compiled
            return mine[0].write(value, writing)

        def fitting(value: Any, writing: Any) -> Any:
            return next(each for each in mine if _fits(each, value)).write(value, writing)

        return only if len(mine) == 1 else fitting

    @property
    def growing(self) -> list[Growth]:
        """The rows that stream in pieces."""
        return [
            Growth(shape, row, *row.grows.rsplit(".", 1))
            for shape in self.shapes
            for row in shape.rows
            if row.grows
        ]

    @property
    def unsupported(self) -> tuple[str, ...]:
        """What of the model none of its shapes has, as `Text.signature`."""
        kinds = {"Opaque": [["cache", "signature"]]}
        for shape in self.shapes:
            kinds.setdefault(shape.kind.__name__, []).append(shape.unsupported)
        return tuple(
            f"{kind}.{name}"
            for kind, (first, *others) in kinds.items()
            for name in first
            if all(name in other for other in others)
        )


def _fits(shape: Shape[Any], value: Any) -> bool:
    return shape.fits is None or shape.fits(value)


class KeyUnion(Union):
    """Objects that are told apart by a key that they have; with several they are unknown.

    The last shape is for what has none of the other keys. Names may be in snake case.
    """

    def __init__(
        self, dialect: str, *shapes: Shape[Any], writers: Mapping[type, Writer] = _NO_WRITERS
    ) -> None:
        """Take the shapes; `writers` are hooks for classes without one."""
        super().__init__(dialect, *shapes, writers=writers)
        self.by_key: dict[str, Shape[Any]] = {}
        for shape in shapes:
            for key in (shape.key, snake(shape.key)):
                self.by_key.setdefault(key, shape)
        self.last = shapes[-1]

    def shape_of(self, wire: Any) -> Shape[Any] | None:
        """The shape of a wire object."""
        if not isinstance(wire, dict):
            return None
        found: Shape[Any] | None = None
        for key in wire:
            shape = self.by_key.get(key)
            if shape is not None and shape is not self.last and wire[key] is not None:
                if found is not None and shape is not found:
                    return None
                found = shape
        if found is not None:
            return found
        return self.last if {self.last.key, snake(self.last.key)} & wire.keys() else None
