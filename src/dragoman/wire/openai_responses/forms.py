"""Forms: which optional fields an object had on the wire.

The wire allows several forms of the same thing: an item with or without `type`, `status` or empty
`annotations`. Each kind of object has a usual form. An object received in that form has no
overlay, so objects made by hand or stripped of their extras are encoded in it as well. Any other
object has an overlay that lists all its fields without a row. An empty overlay (no such fields)
differs from no overlay (the usual ones).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from dragoman.model.frozen import EMPTY, FrozenDict, freeze_mapping
from dragoman.wire.openai_responses.dialect import NAME
from dragoman.wire.overlay import spelled
from dragoman.wire.rows import OwnerT, Row, Shape, Writer

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
        self._reads_usual, self._writes_usual, self._apart = reads_usual, writes_usual, apart
        self._implied = [row for row in rows if usual and row.wire in usual]

    def _reader(self) -> Iterator[str]:
        yield "def read(w, r):"
        if self._apart:
            yield f"    if {self._apart!r} in w: return shape.unread(w, r)"
        yield "    l = dict(w); f = {}"
        if self.tag is not None:
            yield f"    if l.get('type') == {self.tag!r}: del l['type']"
        given = [f"{name}={source}" for name, source in self.given.items()]
        for number, row in enumerate(self.rows):
            if row.is_required:
                yield from self._required(number, row)
                yield f"    del l[{row.wire!r}]"
                given.append(f"{row.field}=v{number}" if row.field else f"**v{number}")
            else:
                yield from self._taken_out(number, row)
        if self._rest:
            theirs = f"{{k: v for k, v in l.items() if k not in {self._in_form}}}"
            yield f"    f[{self._rest!r}] = {theirs}"
            yield f"    l = {{k: l[k] for k in {self._in_form} if k in l}}"
        usual = "shape.usual_form"
        if self.usual_form:
            tests = [f"not f.get({row.field!r})" for row in self._implied] + [self._reads_usual]
            usual = f"{usual} if {' and '.join(tests)} else EMPTY"
        given.append(f"extras=shape.extras_in(l, {usual})")
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
        yield f"        if m is not None{is_same}: {put}; del l[{row.wire!r}]"

    @cached_property
    def write(self) -> Writer:
        """Write the rows and the form, and what the overlay says of the spelling."""
        allows, body = self.allows, self.body
        readable = {row.wire: row for row in self.rows if row.field == "is_error"}

        def write(value: Any, writing: Any) -> Any:
            if allows is not None and (refusal := allows(value, writing)) is not None:
                return writing.leave_out(refusal)
            wire, extras = body(value, writing), value.extras
            form = self.usual_form or EMPTY
            if form and not self._writes_usual(value, writing):
                form = EMPTY
            if self._rest and isinstance(more := getattr(value, self._rest), Mapping):
                wire = {**more, **wire}
            for key, found in form_of(extras, form).items():
                if key == "type" or (key not in wire and key != self._apart):
                    row = readable.get(key)
                    if row is None or not row.value.passes(found):
                        wire[key] = found
                    elif key in form:  # the model's value was edited
                        wire[key] = form[key]
            return wire if extras is EMPTY else spelled(wire, extras, NAME)

        return write
