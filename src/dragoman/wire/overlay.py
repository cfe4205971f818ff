"""The overlay: wire fields that the model doesn't have, and how the wire spelled the others.

A decoder keeps both in `extras`, so that an unedited body is sent back exactly as it came:

- under the dialect's name: the fields that the model doesn't have, explicit nulls included;
- under `"<dialect> spelling"`: how the other fields were spelled, where the encoder's default
  differs.
  `values` lists `[path, ours, theirs]`: the wire had `theirs` where we write `ours`; without
  `theirs` the field was absent. `guesses` is the same, where the model may hold less than the wire
  did: another dialect reports that as a loss. `names` lists `[path, name]`: the field had another
  name. `single` lists the paths of lists that were written as their only item. `words` are notes
  for the dialect's encoder, where it has several spellings to choose from. `said` is explained in
  `overlay_edits`. Anything else is a note that an encoder looks up itself (`note_of`).

`with_overlay` puts all that back by one rule: a field is added where the model has no value, a
spelling is applied where the encoder still writes what it wrote for the unedited value. So an edit
always wins, and nothing reaches another dialect.

Extras may come from stored documents and from clients: anything of another shape than decoders
produce is ignored. `overlay_stored` reads what earlier versions stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY, FrozenDict, freeze, freeze_mapping
from dragoman.model.jsontext import dumps
from dragoman.wire.digests import sha256
from dragoman.wire.overlay_stored import OLD_ENDINGS, has_old_notes, is_old, old_keys, upgraded

T = TypeVar("T")
Path = Sequence[str | int]
_NOTHING: tuple[Mapping[str, Any], Mapping[str, Any]] = (EMPTY, EMPTY)
_SPELLING = " spelling"
_VALUES, _GUESSES, _NAMES = "values", "guesses", "names"
_SINGLE, _WORDS = "single", "words"
_BOTH = (_VALUES, _GUESSES)
_DIGEST = "sha256:"  # prefix of the digest that is stored in place of a long list of ours
_ENTRY = (2, 3)
_ABSENT: Any = object()


@lru_cache(maxsize=256)  # bounded, since extras from clients may have any number of names
def spelling_key(dialect: str) -> str:
    """The key in extras for how a dialect spelled things."""
    return dialect + _SPELLING


def is_spelling(key: str) -> bool:
    """Whether a key of extras is for how a dialect spelled things."""
    return key.endswith(_SPELLING)


# --- decoding


def overlay_of(
    wire: Mapping[str, Any],
    known: Collection[str],
    dialect: str,
    written: Mapping[str, Any] = EMPTY,
    words: Iterable[str] = (),
    *,
    notes_absent: bool = True,
) -> FrozenDict:
    """Collect as `extras` what of a wire object an encoder would not restore by itself.

    Fields that are `known` it restores. `written` is what the encoder writes by default for the
    others: it may differ from the wire, or the wire may lack it. `words` are notes for the encoder.
    Without `notes_absent`, fields that the wire lacks are left to the caller.

    >>> overlay_of({"type": "text", "text": "hi", "odd": None}, {"type", "text"}, "openai-chat")
    {'openai-chat': {'odd': None}}
    """
    left = dict(wire)
    for key in filter(wire.__contains__, known):
        del left[key]
    if not written:
        return extras_of(left, dialect, words)
    overlay = Overlay(dialect)
    overlay.notes_absent = notes_absent
    overlay.compare(left, written)
    if words:
        overlay.note(_WORDS, list(words))
    return overlay.extras()


def extras_of(fields: Mapping[str, Any], dialect: str, words: Iterable[str] = ()) -> FrozenDict:
    """Extras with these fields, and notes that tell the encoder how others were spelled."""
    if words:
        if not fields:
            return _words_alone(dialect, tuple(words))
        return freeze_mapping({dialect: fields, **_words_alone(dialect, tuple(words))}, "the wire")
    return FrozenDict({dialect: freeze(fields, "the wire", 1)}) if fields else EMPTY


@lru_cache(maxsize=1024)  # the words are ours and few, so most messages share one object
def _words_alone(dialect: str, words: tuple[str, ...]) -> FrozenDict:
    return freeze_mapping({spelling_key(dialect): {_WORDS: list(words)}}, "the wire")


def with_word(extras: Mapping[str, Any], dialect: str, word: str) -> FrozenDict:
    """The extras with one word added."""
    return with_words(extras, dialect, (*words_of(extras, dialect), word))


def with_words(extras: Mapping[str, Any], dialect: str, words: Iterable[str]) -> FrozenDict:
    """The extras with exactly these words."""
    return with_note(extras, dialect, _WORDS, list(words))


def with_guesses(extras: Mapping[str, Any], dialect: str, guesses: Iterable[Any]) -> FrozenDict:
    """The extras with `guesses` appended, if there are any; later ones take precedence."""
    key = spelling_key(dialect)
    spelling = extras.get(key, EMPTY)
    listed = [*spelling.get(_GUESSES, ()), *guesses]
    changed = {**extras, key: {**spelling, _GUESSES: listed}} if listed else extras
    return freeze_mapping(changed, "the wire")


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> FrozenDict:
    """Two overlays of one object as one."""
    return freeze_mapping(_merged(one, other), "the wire")


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {**one}
    for key, value in other.items():
        known = made.get(key)
        if isinstance(known, dict) and isinstance(value, dict):
            made[key] = _merged(known, value)
        elif isinstance(known, list) and isinstance(value, list):
            made[key] = [*known, *value]
        else:
            made[key] = value
    return made


class Overlay:
    """Collects the overlay of one wire object."""

    __slots__ = ("dialect", "fields", "notes_absent", "spelling")

    def __init__(self, dialect: str, fields: dict[str, Any] | None = None) -> None:
        self.dialect = dialect
        self.fields: dict[str, Any] = {} if fields is None else fields
        """The fields that the model doesn't have."""
        self.notes_absent = True
        """Whether `compare` records fields that we write and the wire lacked."""
        self.spelling: dict[str, Any] = {}

    def value(self, path: Path, ours: Any, theirs: Any) -> None:
        """Record a value that the wire spelled differently."""
        self.spelling.setdefault(_VALUES, []).append([list(path), ours, theirs])

    def guess(self, path: Path, ours: Any, theirs: Any) -> None:
        """Like `value`, where the model may hold less than the wire did."""
        self.spelling.setdefault(_GUESSES, []).append([list(path), ours, theirs])

    def absent(self, path: Path, ours: Any) -> None:
        """Record a field that we write and the wire lacked."""
        self.spelling.setdefault(_VALUES, []).append([list(path), ours])

    def single(self, *path: str) -> None:
        """Record a list that was written as its only item."""
        self.spelling.setdefault(_SINGLE, []).append(list(path))

    def note(self, kind: str, value: Any) -> None:
        """Record a note that an encoder looks up with `note_of`."""
        self.spelling[kind] = value

    def renamed(self, wire: dict[str, Any], names: Mapping[str, str], *path: str) -> dict[str, Any]:
        """Rename fields of the object at a path; returns the object itself if it has none of them.

        If it has both names of a field, each is kept.
        """
        if names.keys().isdisjoint(wire):
            return wire
        renamed: dict[str, Any] = {}
        for key, value in wire.items():
            name = names.get(key)
            if name is None or name in wire:
                renamed[key] = value
            else:
                renamed[name] = value
                self.spelling.setdefault(_NAMES, []).append([[*path, name], key])
        return renamed

    def compare(self, wire: Mapping[str, Any], rebuilt: Mapping[str, Any], key: str = "") -> None:
        """Record what the wire has and our encoder would omit or write differently.

        `key` is the field that holds the compared object.
        """
        left = self._compared(wire, rebuilt, (key,) if key else ())
        if not key:
            self.fields.update(left)
        elif left or not rebuilt:
            self.fields[key] = left

    def _compared(
        self, wire: Mapping[str, Any], rebuilt: Mapping[str, Any], path: tuple[str, ...]
    ) -> dict[str, Any]:
        left = dict(wire)
        for key in filter(rebuilt.__contains__, wire):
            value, ours = wire[key], rebuilt[key]
            if isinstance(value, dict) and isinstance(ours, dict):
                if inner := self._compared(value, ours, (*path, key)):
                    left[key] = inner
                    continue
            elif type(value) is str and type(ours) is str:  # most are
                if value != ours:
                    self.guess((*path, key), ours, value)
            elif not are_same(value, ours):
                is_long = isinstance(value, list) and isinstance(ours, (list, tuple))
                self.guess((*path, key), _digest(ours) if is_long else ours, value)
            del left[key]
        for key in rebuilt if self.notes_absent else ():
            if key not in wire:
                self.absent((*path, key), rebuilt[key])
        return left

    def extras(self) -> FrozenDict:
        """Everything collected, as `extras`."""
        kept: dict[str, Any] = {}
        if self.fields:
            kept[self.dialect] = freeze(self.fields, "the wire", 1)
        if self.spelling:
            kept[spelling_key(self.dialect)] = freeze(self.spelling, "the wire", 1)
        return FrozenDict(kept) if kept else EMPTY


# --- encoding


def with_overlay(body: dict[str, Any], extras: Mapping[str, Any], dialect: str) -> dict[str, Any]:
    """Restore the original spelling of an encoder's output, as far as it was not edited since.

    The result is not a dict, despite the annotation, if a whole message came as something else.
    """
    if extras is EMPTY or not extras:
        return body
    fields, spelling = _kept(extras, dialect)
    if fields:
        _fill(body, fields)
    if not spelling or (len(spelling) == 1 and _WORDS in spelling):
        return body
    spelled_body: dict[str, Any] = _spelled(body, spelling)
    return spelled_body


def spelled(body: T, extras: Mapping[str, Any], dialect: str) -> T:
    """Like `with_overlay`, but without the fields that the model doesn't have."""
    if extras is EMPTY or not extras:
        return body
    return cast("T", _spelled(body, _kept(extras, dialect)[1]))


def _fill(body: dict[str, Any], fields: Mapping[str, Any]) -> None:
    for key, value in fields.items():
        if key not in body:
            body[key] = value
        elif isinstance(value, dict) and isinstance(body[key], dict):
            body[key] = inner = dict(body[key])
            _fill(inner, value)


def _spelled(body: Any, spelling: Mapping[str, Any]) -> Any:
    for kind in _BOTH:
        for path, ours, *theirs in _entries(spelling.get(kind)):
            if path or theirs:
                body = _changed(body, path, _restore, (ours, theirs))
    for path in _listed(spelling.get(_SINGLE)):
        body = _changed(body, path, _unlist, None)
    # The names of outer objects were recorded first; the paths use our own names.
    for entry in reversed(_listed(spelling.get(_NAMES))):
        match entry:
            case [[*outer, str(name)], str(spelled)]:
                body = _changed(body, outer, _rename, (name, spelled))
            case _:
                pass
    return body


def _changed(value: Any, path: list[Any], change: Callable[[Any, Any], Any], how: Any) -> Any:
    """Change what is at a path; containers on the way are copied, as they may be shared.

    A value changed to `_ABSENT` is removed from its object.
    """
    if not path:
        return change(value, how)
    step, *rest = path
    if not _holds(value, step):
        return value
    inner = _changed(value[step], rest, change, how)
    if inner is value[step]:
        return value
    copied: Any = dict(value) if isinstance(value, dict) else list(value)
    if inner is not _ABSENT:
        copied[step] = inner
    elif isinstance(value, dict):
        del copied[step]
    return copied


def _restore(value: Any, spelled: tuple[Any, list[Any]]) -> Any:
    """The wire's value, if we still write what we wrote then."""
    ours, theirs = spelled
    if not _is_still(value, ours):
        return value
    return theirs[0] if theirs else _ABSENT


def _unlist(value: Any, _how: None) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _rename(value: Any, names: tuple[str, str]) -> Any:
    ours, theirs = names
    if not isinstance(value, dict) or ours not in value:
        return value
    changed = dict(value)
    changed[theirs] = changed.pop(ours)
    return changed


def _holds(value: Any, step: Any) -> bool:
    if isinstance(value, dict):
        return isinstance(step, str) and step in value
    return isinstance(value, list) and type(step) is int and 0 <= step < len(value)


def _is_still(value: Any, ours: Any) -> bool:
    if type(ours) is str and ours.startswith(_DIGEST) and isinstance(value, (list, tuple)):
        return bool(_digest(value) == ours)
    return are_same(value, ours)


def _digest(items: Any) -> Any:
    """A digest of a list of ours; the list itself if it can't be serialised."""
    try:
        return _DIGEST + sha256(dumps(items)).hexdigest()[:16]
    except InvalidInputError:
        return items


_SCALARS = frozenset({str, int, float, bool, type(None)})


def are_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    # True == 1 and 1 == 1.0 in Python, but not in JSON, at any depth.
    if type(one) in _SCALARS:
        return type(one) is type(other) and bool(one == other)
    if isinstance(one, dict):
        return (
            isinstance(other, dict)
            and one.keys() == other.keys()
            and all(are_same(value, other[key]) for key, value in one.items())
        )
    if isinstance(one, (list, tuple)):
        return (
            isinstance(other, (list, tuple))
            and len(one) == len(other)
            and all(map(are_same, one, other))
        )
    return type(one) is type(other) and bool(one == other)


# --- lookup


def fields_of(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """The fields of this dialect that the model doesn't have."""
    return EMPTY if extras is EMPTY else _kept(extras, dialect)[0]


def note_of(extras: Mapping[str, Any], dialect: str, kind: str) -> Any:
    """The note of that kind about how this dialect spelled something, or None."""
    return spelling_of(extras, dialect).get(kind)


def spelling_of(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """How this dialect spelled things, by kind of note."""
    return EMPTY if extras is EMPTY else _kept(extras, dialect)[1]


def original_value(extras: Mapping[str, Any], dialect: str, *path: str) -> Any:
    """The value that the wire had there instead of ours, or None."""
    for entry in _entries(note_of(extras, dialect, _VALUES)):
        if entry[0] == [*path] and len(entry) == _ENTRY[1]:
            return entry[2]
    return None


def words_of(extras: Mapping[str, Any], dialect: str) -> Collection[Any]:
    """The notes for the encoder in extras."""
    if extras is EMPTY:
        return ()
    words = _kept(extras, dialect)[1].get(_WORDS)
    return words if isinstance(words, list) else ()


def with_note(extras: Mapping[str, Any], dialect: str, kind: str, value: Any) -> FrozenDict:
    """The extras with a note, which replaces one of that kind."""
    given, key = current(extras, dialect), spelling_key(dialect)
    spelling = given.get(key)
    noted = {**spelling, kind: value} if isinstance(spelling, Mapping) else {kind: value}
    return freeze_mapping({**given, key: noted}, "the wire")


def without_spelling(extras: Mapping[str, Any], dialect: str) -> FrozenDict:
    """The extras without this dialect's spelling, so that the encoder uses its defaults."""
    given, key = current(extras, dialect), spelling_key(dialect)
    return freeze_mapping({name: given[name] for name in given if name != key}, "the wire")


def has_overlay(extras: Mapping[str, Any], dialect: str) -> bool:
    """Whether extras have anything of this dialect."""
    return not extras.keys().isdisjoint(overlay_keys(dialect))


def own_extras(extras: Mapping[str, Any], dialect: str) -> FrozenDict:
    """The part of the extras that belongs to this dialect."""
    if extras is EMPTY:
        return EMPTY
    given, key = current(extras, dialect), spelling_key(dialect)
    own = {name: given[name] for name in (dialect, key) if name in given}
    if isinstance(spelling := own.get(key), Mapping):
        own[key] = {
            kind: list(filter(_is_inside, _entries(note))) if kind in _BOTH else note
            for kind, note in spelling.items()
        }
    return freeze_mapping(own, "the extras")


def are_sound(extras: Mapping[str, Any], dialect: str) -> bool:
    """Whether extras belong to this dialect only, and have the shape that decoders produce."""
    if not extras.keys() <= overlay_keys(dialect):
        return False
    given = current(extras, dialect)
    fields, spelling = (given.get(key, EMPTY) for key in (dialect, spelling_key(dialect)))
    if not isinstance(fields, Mapping) or not isinstance(spelling, Mapping):
        return False
    return all(
        isinstance(listed := spelling.get(kind, []), list)
        and sum(map(_is_inside, _entries(listed))) == len(listed)
        for kind in _BOTH
    )


def kept_of_others(
    extras: Mapping[str, Any], dialect: str
) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """The overlays of other dialects in extras: dialect, fields, and spelling."""
    for other in dict.fromkeys(map(_dialect_of, extras)):
        if other != dialect:
            yield (other, *_kept(extras, other))


def has_no_content(extras: Mapping[str, Any]) -> bool:
    """Whether extras hold only words for an encoder, or one null, as those of most messages do."""
    if len(extras) != 1:
        return False
    ((key, notes),) = extras.items()
    if not isinstance(notes, dict) or len(notes) != 1:
        return False
    ((name, value),) = notes.items()
    return value is None or (name == _WORDS and key.endswith(_SPELLING))


def guesses_in(spelling: Mapping[str, Any]) -> list[list[Any]]:
    """Entries of path, our value and, unless the wire lacked the field, its value."""
    return _entries(spelling.get(_GUESSES))


@lru_cache(maxsize=256)
def _keys(dialect: str) -> tuple[str, frozenset[str], frozenset[str]]:
    return spelling_key(dialect), old_keys(dialect), overlay_keys(dialect)


def _kept(extras: Mapping[str, Any], dialect: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """A dialect's overlay in extras: the fields, and the spelling."""
    key, old, own = _keys(dialect)
    if own.isdisjoint(extras):  # only other dialects'
        return _NOTHING
    fields, spelling = extras.get(dialect), extras.get(key)
    known = (fields is not None) + (spelling is not None)
    if not known and old.isdisjoint(extras):
        return _NOTHING
    has_more = len(extras) != known or (fields is not None and has_old_notes(fields, dialect))
    if has_more and is_old(extras, dialect):
        given = upgraded(extras, dialect, key)
        fields, spelling = given.get(dialect), given.get(key)
    # Extras are frozen, so an object in them is a dict.
    return (
        fields if isinstance(fields, dict) else EMPTY,
        spelling if isinstance(spelling, dict) else EMPTY,
    )


def current(extras: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    """The extras in the current format, whichever version stored them."""
    return upgraded(extras, dialect, spelling_key(dialect)) if is_old(extras, dialect) else extras


@lru_cache(maxsize=256)
def overlay_keys(dialect: str) -> frozenset[str]:
    """The keys of extras that belong to a dialect."""
    return old_keys(dialect) | {dialect, spelling_key(dialect)}


@lru_cache(maxsize=256)
def _dialect_of(key: str) -> str:
    """The dialect that a key of extras belongs to."""
    for ending in (_SPELLING, *OLD_ENDINGS):
        key = key.removesuffix(ending)
    return key


def _listed(found: Any) -> list[list[Any]]:
    return [entry for entry in found if isinstance(entry, list)] if isinstance(found, list) else []


def _entries(found: Any) -> list[list[Any]]:
    """The valid entries: a path, our value and optionally theirs."""
    return [
        entry for entry in _listed(found) if len(entry) in _ENTRY and isinstance(entry[0], list)
    ]


def _is_inside(entry: list[Any]) -> bool:
    """Whether the path leads to a field inside an object."""
    return bool(entry[0]) and all(isinstance(step, str) for step in entry[0])
