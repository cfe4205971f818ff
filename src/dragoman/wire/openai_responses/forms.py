"""Forms: which optional fields an object had on the wire.

The wire allows several forms of the same thing: an item with or without `type`, `status` or empty
`annotations`. Each kind of object has a usual form. An object received in that form has no
overlay, so objects made by hand or stripped of their extras are encoded in it as well. Any other
object has an overlay that lists all its fields without a row. An empty overlay (no such fields)
differs from no overlay (the usual ones).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.overlay import spelled
from dragoman.wire.rows import OwnerT, Row, Shape

BARE: Final = FrozenDict({NAME: EMPTY})
"""The extras of an object received without any optional fields."""
_FREQUENT: tuple[dict[str, Any], ...] = (
    {"type": "message"},
    {"annotations": [], "logprobs": []},
    {"annotations": []},
    {"status": "completed"},
)
_SHARED: Final = tuple((form, FrozenDict({NAME: freeze_mapping(form)})) for form in _FREQUENT)
Form = Mapping[str, Any]
COMPLETED: Form = {"status": "completed"}


def extras_in(fields: Form, usual: Form | None = EMPTY) -> FrozenDict:
    """The extras of an object with these fields besides those of rows; none if it is as usual."""
    if fields == usual:
        return EMPTY
    if not fields:
        return BARE
    for form, extras in _SHARED:
        if fields == form:
            return extras
    return FrozenDict({NAME: freeze_mapping(fields, "the wire")})


def form_of(extras: Form, usual: Form = EMPTY) -> Form:
    """The optional fields to encode an object with."""
    found = extras.get(NAME)
    return found if isinstance(found, dict) else usual


def formed(body: dict[str, Any], extras: Form, usual: Form = EMPTY) -> dict[str, Any]:
    """Add the optional fields to a body, unless it already has them."""
    for key, value in form_of(extras, usual).items():
        body.setdefault(key, value)
    return body


def without(wire: Form, *keys: str) -> dict[str, Any]:
    """The fields of an object except the given ones."""
    left = dict(wire)
    for key in keys:
        left.pop(key, None)
    return left


class Formed(Shape[OwnerT]):
    """A shape whose overlay is the object's form; its rows are fields of the object itself.

    `usual` is the usual form; None: the form is always kept. It is usual where `reads_usual` holds,
    a source of `w`, `r` and the fields `f`, and where `writes_usual` does, of the value and the
    writing. A field of the usual form that has a row only belongs to it where the row has no value.
    A value XX
    """

    def __init__(
        self,
        tag: str | None,
        kind: type[OwnerT],
        *rows: Row,
        usual: Form | None = EMPTY,
        reads_usual: str = "True",
        writes_usual: Callable[[Any, Any], Any] = lambda _value, _writing: True,
        apart: str = "",
        rest: str = "",
        in_form: tuple[str, ...] = (),
        **hooks: Any,
    ) -> None:
        """Take what there is to say of it; `hooks` are those of all shapes."""
        super().__init__(NAME, tag, kind, *rows, **hooks)
        self._rest, self._in_form = rest, in_form
        self.usual_form, self.extras_in = usual, extras_in
        self._reads_usual, self.is_usual, self._apart = reads_usual, writes_usual, apart
        self._needed = frozenset(row.wire for row in rows if row.is_required)
        self._fields_read = {row.wire: row.field for row in rows if not row.is_required}
        self._read_by = {row.wire: row.value.read for row in rows if row.field == "is_error"}
        self._implied = [row for row in rows if usual and row.wire in usual]

    def _reader(self) -> Iterator[str]:
        """The source of `read`; what the rows did not take (all but `n` fields) is the form."""
        yield "def read(w, r):"
        if self._apart:
            yield f"    if {self._apart!r} in w: return shape.unread(w, r)"
        given = [f"{name}={source}" for name, source in self.given.items()]
        is_tagged = "0" if self.tag is None else f"(w.get('type') == {self.tag!r})"
        yield f"    f = {{}}; n = {sum(row.is_required for row in self.rows)} + {is_tagged}"
        for number, row in enumerate(self.rows):
            if row.is_required:
                yield from self._required(number, row)
                given.append(f"{row.field}=v{number}" if row.field else f"**v{number}")
            else:
                yield from self._taken_out(number, row)
        yield "    l = EMPTY if n == len(w) else shape.left(w, f)"
        if self._rest:
            theirs = f"{{k: v for k, v in l.items() if k not in {self._in_form}}}"
            yield f"    f[{self._rest!r}] = {theirs}"
            yield f"    l = {{k: l[k] for k in {self._in_form} if k in l}}"
        usual = "shape.usual_form"
        if self.usual_form:
            tests = [f"not f.get({row.field!r})" for row in self._implied] + [self._reads_usual]
            usual = f"{usual} if {' and '.join(tests)} else EMPTY"
        yield f"    u = {usual}"
        yield "    x = EMPTY if l is EMPTY and u is EMPTY else shape.extras_in(l, u)"
        given.append("extras=x")
        yield f"    made = make({', '.join(given)}, **f)"
        yield "    return shape.unread(w, r) if made is None else made"

    def _taken_out(self, number: int, row: Row) -> Iterator[str]:
        """The source that reads an optional field."""
        yield f"    v = w.get({row.wire!r})"
        yield f"    if {row.value.test}:"
        call = f"read{number}(v{', r' if row.deep else ''})"
        yield f"        m = {'v' if row.value.read is None else call}"
        is_same = "" if row.value.is_exact else f" and same(write{number}(m), v)"
        put = f"f[{row.field!r}] = m" if row.field else "f.update(m)"
        yield f"        if m is not None{is_same}: {put}; n += 1"

    def left(self, wire: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """What the rows did not take of an object, of which these optional fields were read."""
        return {
            key: value
            for key, value in wire.items()
            if key not in self._needed
            and self._fields_read.get(key) not in fields
            and not (key == "type" and value == self.tag)
        }

    def _writer(self, name: str) -> Iterator[str]:
        """The source of `write`, which adds the form to the rows."""
        *lines, last = super()._writer(name)
        yield from lines
        if name == "body":
            yield last
            return
        if self._rest:
            yield f"    if isinstance(p.{self._rest}, dict): w = {{**p.{self._rest}, **w}}"
        yield "    if p.extras is not EMPTY: return shape.filled(p, w, o)"
        if self.usual_form:
            yield "    if shape.is_usual(p, o):"
            yield from (
                f"        w.setdefault({key!r}, {value!r})"
                for key, value in self.usual_form.items()
            )
        yield "    return w"

    def filled(self, value: Any, wire: dict[str, Any], writing: Any) -> Any:
        """The object with its form, and with what the overlay says of the spelling."""
        form = self.usual_form or EMPTY
        if form and not self.is_usual(value, writing):
            form = EMPTY
        for key, found in form_of(value.extras, form).items():
            if key != "type" and (key in wire or key == self._apart):
                continue
            read = self._read_by.get(key)
            if read is None or read(found) is None:
                wire[key] = found
            elif key in form:  # the model's value was edited
                wire[key] = form[key]
        return spelled(wire, value.extras, NAME)
