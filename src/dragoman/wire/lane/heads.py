"""Heads: everything of a request but its conversation, translated once by the general path.

A head is looked up by its exact bytes, and made from a skeleton of the conversation (`skeleton`):
the general path's translation of the skeleton must equal the plain writer's, otherwise the head is
recorded as one that can't use the lane.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from threading import Lock
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from dragoman.model.frozen import FrozenDict
from dragoman.model.messages import Message
from dragoman.model.requests import Request
from dragoman.model.tools import ToolCall, ToolDefinition, ToolResult
from dragoman.wire.context import Context
from dragoman.wire.encoded import Encoded
from dragoman.wire.fitting.cache_hints import hints_of
from dragoman.wire.flags import IdFlags
from dragoman.wire.lane.attachment_templates import learned
from dragoman.wire.lane.attachments import (
    NO_TEMPLATES,
    Templates,
    as_given,
    filled,
)
from dragoman.wire.lane.call_adjustments import renamed_marks, vouched_marks, with_renamed_ids
from dragoman.wire.lane.labels import (
    NO_LABELS,
    Labels,
    fare_alike,
    with_other_text,
    with_others,
    with_samples,
)
from dragoman.wire.lane.plain import (
    ATTACHED,
    CACHED,
    FIRST_FORM,
    MARKS,
    REFUSED,
    SPELLED,
    SPELLED_OTHERWISE,
    UNSHOWN,
    UNSIGNED_CALL,
    Form,
    Lane,
    Mark,
    Marks,
    Names,
    NotPlain,
    Turns,
    encode,
    hints_in,
    loads,
)
from dragoman.wire.lane.reports import Reports, reports_of
from dragoman.wire.lane.skeleton import messages_in, skeleton
from dragoman.wire.lane.survey import surveyed
from dragoman.wire.losses import Loss, Repair
from dragoman.wire.target import Target

_MARK = b"\0"  # never occurs in JSON, where it would be escaped
OBJECT = 256
"""Approximate bytes of a small object with its texts, for the sizes of caches."""


class Translated(Struct, frozen=True, eq=False, gc=False):
    """The general path's translation of a body."""

    request: Request
    encoded: Encoded
    target: Target
    is_named: bool
    """Whether the target is known; if not, content in its own dialect is not changed."""


General = Callable[[bytes], Translated]
Leading = Turns | Sequence[Raw]
"""What precedes a plain conversation: instructions, or raw items (`plain_endings`)."""


_SAMPLE = 256
_Sample = bytes | tuple[int, bytes, bytes, bytes]


def sample_of(fields: bytes) -> _Sample:
    """The lookup key of a head: hashing 100 KB of tools would take as long as everything else."""
    if len(fields) < _SAMPLE * 4:
        return fields
    middle = len(fields) // 2
    return len(fields), fields[:_SAMPLE], fields[middle : middle + _SAMPLE], fields[-_SAMPLE:]


class Given(Struct, gc=False):
    """All fields of a body but its conversation."""

    fields: dict[str, Raw]
    known: bytes
    """The fields as bytes, by which a head is found, and the places of its labels."""
    sample: _Sample
    labels: Labels


def given_in(fields: dict[str, Raw], lane: Lane) -> Given:
    """The fields with their lookup key; labels are replaced with samples."""
    is_labelled = not lane.labels.isdisjoint(fields)
    labels = with_samples(fields, lane.labels) if is_labelled else NO_LABELS
    known = encode(fields)
    if labels:  # a client may have sent the very samples: then the head is another one
        known += b"".join([b"\0" + ".".join(path).encode() for path, _, _ in labels])
    return Given(fields, known, sample_of(known), labels)


class Asked(Struct, frozen=True, eq=False):
    """What determines a translation besides the body."""

    source: Lane
    key: object
    """A unique object for the dialect, the target and the options."""
    repair: bool
    general: General
    """Translates any body with the same head."""
    lane_of: Callable[[str], Lane | None]
    """The lane of a dialect."""

    @property
    def opening(self) -> bytes:
        """What precedes the conversation in a body."""
        return encode(self.source.field) + b":"


class Head(Struct, frozen=True, eq=False):
    """A translated head, and its conditions for a conversation."""

    before: bytes
    """The bytes before the list of the conversation's items, or before its first item."""
    is_begun: bool
    """Whether that list begins with instructions."""
    is_text: bool
    """Whether the conversation is a single text instead of a list."""
    after: bytes
    """The bytes after it."""
    path: str | None
    headers: Mapping[str, str]
    losses: Reports[Loss]
    repairs: Reports[Repair]
    context: Context
    lane: Lane
    passes: bool
    """Whether the conversation is passed on unchanged."""
    is_named: bool
    """Whether the target is known."""
    ids: IdFlags
    """The target's requirements for call ids."""
    accepts: Callable[[Names], bool]
    """Whether the target accepts these call ids."""
    reads_arguments: bool
    """Whether the target parses arguments of calls, and the writer doesn't check them."""
    functions: frozenset[str]
    """The functions that keep their names."""
    attachments: Templates
    """How attachments are written."""
    first: int
    """The number of messages before those that the lane writes."""
    used_ids: frozenset[str]
    """The ids of calls and results in those messages."""
    is_simple: bool
    """Whether the conversation is written by the lane's writer alone, as a whole list."""
    vouch: Callable[[list[Any]], None] | None = None
    """`Lane.vouch`, if the target requires it."""

    @property
    def size(self) -> int:
        """Approximate size in bytes."""
        notes = len(self.losses.fixed) + len(self.repairs.fixed)
        changed = len(self.context.names) + len(self.context.undos) + len(self.used_ids)
        return len(self.before) + len(self.after) + OBJECT * (notes + changed)

    def takes_ids(self, names: Names) -> bool:
        """Whether the target accepts the call ids as they are."""
        used = self.used_ids
        return self.accepts(names) and (not used or used.isdisjoint(names))


def build_head(
    given: Given,
    leading: Leading,
    shape: int,
    forms: tuple[Form, ...],
    functions: Sequence[str],
    asked: Asked,
) -> Head | None:
    """Make the head of a request; None if its conversations must take the general path.

    `functions` are those that the skeleton calls.
    """
    source = asked.source
    turns, names, marks = skeleton(shape, functions, forms, groups_results=source.groups_results)
    called = frozenset(names.values())
    kinds = {kind for kind, _, _ in marks if kind < FIRST_FORM}
    if len(called) < len(functions) or kinds != {kind for kind in MARKS if shape & kind}:
        return None  # the skeleton can't show everything that the shape stands for
    try:
        before = _items(leading, source)
        items = _given(turns, names, marks, forms, source)
        done = _done(given, leading, items, asked)
        first = len(done.request.messages) - messages_in(
            turns, groups_results=source.groups_results
        )
        marks = [(kind, message + first, part) for kind, message, part in marks]
        lane = asked.lane_of(done.target.dialect)
        is_shown = _may_pass(shape, forms, marks, done) and _has_such_ids(names, first, shape, done)
        if lane is None or not is_shown:
            return None
        read = items if before is leading else [*before, *items]
        if lane is source:
            passing = _head(done, lane, read, marks, first, called, passes=True)
            if passing is not None or shape & SPELLED_OTHERWISE:
                return passing
        if source.has_places:  # ids of calls without one are derived, and known only now
            turns = source.read(encode(read))[0]
            _, names, instructions = surveyed(turns)
            turns = turns[len(instructions) :]
        if shape & REFUSED:
            marks = renamed_marks(turns, marks, first, groups=source.groups_results)
            names = with_renamed_ids(turns, names, done.target.ids)
        shown = done.encoded.body.get(lane.field)
        templates = learned(turns, names, lane, shown) if forms else NO_TEMPLATES
        written = lane.write(filled(turns, templates) if forms else turns, names)
        made = _head(done, lane, loads(encode(written)), marks, first, called, templates)
        is_vouched = lane is not source and done.target.thinking.signs_calls
        if made is not None or lane.vouch is None or not is_vouched:
            return made
        lane.vouch(written)
        marks = vouched_marks(turns, marks, first, groups=source.groups_results)
        made = _head(done, lane, loads(encode(written)), marks, first, called, templates)
        return None if made is None else replace(made, vouch=lane.vouch, is_simple=False)
    except Exception:  # noqa: BLE001 - the general path will report it for the body itself
        return None


def _done(given: Given, leading: Leading, items: list[Any], asked: Asked) -> Translated:
    """The general path's translation; raises if it depends on labels."""
    source, labels = asked.source, given.labels
    said = {source.field: [*_items(leading, source), *items]}
    done = asked.general(encode({**given.fields, **said}))
    if labels:
        said = {source.field: [*_items(with_other_text(leading, labels), source), *items]}
        other = asked.general(encode({**with_others(given.fields, labels), **said}))
        if not fare_alike(done.encoded, other.encoded, labels):
            raise NotPlain
    return done


def called_first(names: Names, given: Given) -> Sequence[str]:
    """A function for the skeleton's calls: the first one called, preferably a declared one."""
    declared = bytes(given.fields.get("tools", b""))
    for name in names.values():
        if encode(name) in declared:
            return (name,)
    return tuple(names.values())[:1]


def _items(leading: Leading, source: Lane) -> Sequence[Any]:
    """What precedes the conversation, in the source's dialect."""
    if leading and isinstance(leading[0], Raw):
        return leading
    items: list[Any] = loads(encode(source.write(list(leading), {})))  # type: ignore[arg-type]
    return items


def _given(
    turns: Turns, names: Names, marks: Marks, forms: tuple[Form, ...], source: Lane
) -> list[Any]:
    """A skeleton in the source's dialect, including what the marks stand for."""
    written = source.write(filled(turns, as_given(forms)) if forms else turns, names)
    items: list[Any] = loads(encode(written))
    for mark in marks:
        if mark[0] < FIRST_FORM:  # the others are already written
            source.mark(items, mark)
    if marks and _places(source.read(encode(items))[1]) != _places(marks):
        raise NotPlain  # the skeleton doesn't read back as intended
    return items


def _places(marks: Marks) -> list[Mark]:
    """Sorted marks; spelling differences are reduced to their message."""
    return sorted(
        (ATTACHED if kind >= FIRST_FORM else kind, number, 0 if kind & SPELLED else part)
        for kind, number, part in marks
        if not kind & UNSHOWN
    )


def _has_such_ids(names: Names, first: int, shape: int, done: Translated) -> bool:
    """Whether the ids in a skeleton are unused, and refused if they should be."""
    is_refused = not any(map(done.target.ids.accepts, names)) if shape & REFUSED else True
    return is_refused and _used_ids(done.request.messages[:first]).isdisjoint(names)


def _may_pass(shape: int, forms: tuple[Form, ...], marks: Marks, done: Translated) -> bool:
    """Whether the skeleton is representative of every conversation of its shape."""
    most = done.target.cache.max_hints
    if most and any(b"cache" in form.spelled for form in forms):
        return False
    if shape & CACHED and most:  # the number of hints matters
        hints = hints_in(shape)
        shown = sum(bool(kind & CACHED) for kind, _, _ in marks)
        if hints is None or hints > shown or len(list(hints_of(done.request))) > most:
            return False
    return not (shape & UNSIGNED_CALL and done.target.thinking.signs_calls)


def _head(
    done: Translated,
    lane: Lane,
    items: list[Any],
    marks: Marks,
    leading: int,
    called: frozenset[str],
    templates: Templates = NO_TEMPLATES,
    *,
    passes: bool = False,
) -> Head | None:
    encoded = done.encoded
    losses = reports_of(encoded.losses, marks, leading)
    repairs = reports_of(encoded.repairs, marks, leading)
    body = dict(encoded.body)
    written = body.get(lane.field)
    is_text = isinstance(written, str) and len(items) == 1 and items[0].get("content") == written
    first = [] if is_text else _first(written, items)
    if first is None or losses is None or repairs is None:
        return None
    body[lane.field] = Raw(_MARK)
    before, _, after = encode(body).partition(_MARK)
    aliased = frozenset(encoded.context.names.values())
    functions, others = _declared(done.request)
    used_ids = _used_ids(done.request.messages[:leading])
    reads_arguments = done.target.tools.parses_arguments and (passes or not lane.reads_arguments)
    if called & others:
        return None  # calls of such tools are translated by content
    return Head(
        before + (encode(first)[:-1] + b"," if first else b""),
        bool(first),
        is_text,
        after,
        encoded.path,
        encoded.headers,
        losses,
        repairs,
        _shared(encoded.context),
        lane,
        passes,
        done.is_named,
        done.target.ids,
        done.target.ids.accepts_all,
        reads_arguments,
        (functions | called) - aliased,
        templates,
        leading,
        used_ids,
        is_simple=not (passes or first or is_text or reads_arguments or used_ids),
    )


def _declared(request: Request) -> tuple[frozenset[str], frozenset[str]]:
    """The names of functions, and of other kinds of tools."""
    names: tuple[list[str], list[str]] = ([], [])
    for tool in request.tools:
        is_function = isinstance(tool, ToolDefinition) and tool.kind == "function"
        names[not is_function].append(tool.name)
    return frozenset(names[0]), frozenset(names[1])


def _used_ids(messages: Sequence[Message]) -> frozenset[str]:
    """The ids of calls, and of results even without a call."""
    return frozenset(
        part.id if isinstance(part, ToolCall) else part.call_id
        for message in messages
        for part in message.parts
        if isinstance(part, (ToolCall, ToolResult))
    )


def _shared(context: Context) -> Context:
    """An immutable context, to be shared by many requests."""
    return Context(
        FrozenDict(context.names),
        calls=FrozenDict(context.calls),
        undos=FrozenDict(context.undos),
        output=context.output,
        ends_with_done=context.ends_with_done,
        limit=context.limit,
        request=context.request,
    )


def _first(written: Any, items: list[Any]) -> list[Any] | None:
    """What precedes the items in the encoded list; None if the items are not at its end."""
    if not isinstance(written, list):
        return None
    return written[: -len(items)] if written[-len(items) :] == items else None


class KeptHead(Struct, eq=False):
    """A cached head, and the bytes that it is for."""

    fields: bytes
    leading: bytes
    head: Head | None
    """None: its conversations can't use the lane."""
    size: int
    was_used: bool = False
    """Whether it was used since it was added or last spared from eviction."""


class Heads:
    """A cache of heads, bounded in number and bytes. Thread-safe."""

    def __init__(
        self, max_heads: int = 256, max_bytes: int = 16 * 1024 * 1024, max_seen: int = 4096
    ) -> None:
        self._max_heads = max_heads
        self._max_bytes = max_bytes
        self._max_seen = max_seen
        self._heads: dict[Hashable, KeptHead] = {}
        self._seen: set[int] = set()
        self._size = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._heads)

    @property
    def size(self) -> int:
        """The number of bytes held, keys included."""
        return self._size

    def find(self, key: Hashable, fields: bytes, leading: bytes = b"") -> KeptHead | None:
        """What is known of exactly these bytes."""
        kept = self._heads.get(key)
        if kept is None or kept.fields != fields or kept.leading != leading:
            return None
        kept.was_used = True
        return kept

    def was_seen(self, key: Hashable) -> bool:
        """Whether this key was looked up before: single requests are not worth a head."""
        hashed = hash(key)
        if hashed in self._seen:
            return True
        with self._lock:
            if len(self._seen) >= self._max_seen:
                self._seen.clear()
            self._seen.add(hashed)
        return False

    def keep(self, key: Hashable, fields: bytes, head: Head | None, leading: bytes = b"") -> None:
        """Cache a head, or that there is none; evicts the oldest."""
        size = 2 * (len(fields) + len(leading))  # the key holds a part of it too
        size += 0 if head is None else head.size
        if size > self._max_bytes // 4:
            return
        with self._lock:
            replaced = self._heads.pop(key, None)
            self._size += size - (0 if replaced is None else replaced.size)
            self._heads[key] = KeptHead(fields, leading, head, size)
            while len(self._heads) > self._max_heads or self._size > self._max_bytes:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Evict the oldest head; one that was used since is moved to the end once instead."""
        key = next(iter(self._heads))
        kept = self._heads.pop(key)
        if kept.was_used:
            kept.was_used = False
            self._heads[key] = kept
        else:
            self._size -= kept.size

    def clear(self) -> None:
        """Remove all heads."""
        with self._lock:
            self._heads.clear()
            self._seen.clear()
            self._size = 0
