"""The fields of a request that its dialect knows, and what merely looks like one of them.

Unknown fields pass through. Some servers, such as those written in Go, take a name in any case, and
the last one wins: `Model` beside `model` would choose another model than the one that was checked.
So a field whose name *folds* to that of a known field without being it is dropped and reported, and
a name that stands twice is refused. Both hold at the top level and in settings objects.

What is known is derived from what the dialect says about itself: the places of its fields
(`Functions.places`), its `Description`, and its shared settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from operator import is_
from typing import Any, NamedTuple, TypeVar
from unicodedata import normalize

import msgspec
from msgspec import Raw, Struct

from dragoman.errors import ConfigError, InvalidRequest
from dragoman.model.frozen import EMPTY, freeze_mapping
from dragoman.model.messages import Message
from dragoman.model.parts import Part
from dragoman.model.requests import Request
from dragoman.model.tools import ToolResult
from dragoman.wire.dialect import Dialect, dialect
from dragoman.wire.losses import Loss
from dragoman.wire.overlay import is_spelling

OwnerT = TypeVar("OwnerT", Message, Part)
_NONE: frozenset[str] = frozenset()
_LONGEST = 256
"""Characters of a name that may fold to a known one."""
_LIMIT, _ANSWERS = "sampling.max_tokens", "sampling.choices"
_MAX_FIELDS = 1000
"""Fields of an object: each has to be compared, and no client has as many."""
_MAX_FOLDED = 8192
_MIN_FIELD = 5
"""Bytes of the shortest field with its comma: `"":1,`."""
_MAX_CACHED, _MAX_CACHED_BYTES = 256, 2048
_REASON = "left out: its name is another spelling of this field's, which some servers take for it"
_name = re.compile(rb'[ \t\r\n]*"([^"\\]*(?:\\.[^"\\]*)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL)
_separator = re.compile(rb"[ \t\r\n]*([,}])")
_split = msgspec.json.Decoder(dict[str, Raw]).decode
_value = msgspec.json.Decoder().decode
_text = msgspec.json.Decoder(str).decode
_encode = msgspec.json.Encoder().encode
_ODD = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class _Usual(NamedTuple):
    """What follows from the names in an object, in their order."""

    least: int
    """Bytes of the object without its values, if there are no spaces in it."""
    spaced: bytes
    """A template of the object as Python's `json` writes it."""
    inside: tuple[str, ...]
    """Those that are settings objects."""
    lookalikes: Mapping[str, str]
    """Those that only look like known ones, with the known ones."""
    twin: str | None
    """One that is there in another spelling, too."""


class KnownFields(Struct, eq=False):
    """The known names in one object of a request."""

    exact: frozenset[str]
    folded: Mapping[str, str]
    """A known name by its folded form."""
    twins: Mapping[str, frozenset[str]]
    """The other spellings of names that the dialect has several of (Gemini)."""
    inside: Mapping[str, KnownFields]
    """The same for the settings objects among them."""
    limits: tuple[tuple[str, ...], ...] = ()
    """The paths of fields that limit the output."""
    answers: tuple[tuple[str, ...], ...] = ()
    """The paths of fields that say how many answers are wanted."""
    usual: dict[tuple[str, ...], _Usual] = {}
    """By their names, the objects that came before; `clean`: those that were in order, as bytes.
    Clients repeat their settings."""
    clean: set[bytes] = set()


class Accepted(NamedTuple):
    """A body without the fields that only look like known ones."""

    body: bytes
    fields: dict[str, Raw]
    losses: tuple[Loss, ...] = ()


class _Folding(dict[int, str]):
    """What each character folds to, as far as it was asked for."""

    def __missing__(self, code: int) -> str:
        # Upper case first: the dotless i and the long s have an ASCII letter there.
        plain = normalize("NFKD", normalize("NFKC", chr(code)).upper().casefold())
        if len(self) >= _MAX_FOLDED:
            self.clear()
        self[code] = made = "".join(filter(str.isalnum, plain))
        return made


_FOLDING = _Folding()


def folded(name: str) -> str:
    r"""A name as the most lenient reader might compare it.

    Without case, compatibility forms, accents, and everything but letters and digits.

    >>> {folded(name) for name in ("max_tokens", "MaxTokens", "max-to\u212aen\u017f")}
    {'maxtokens'}
    """
    # One character at a time: normalising some of them in a whole text takes milliseconds.
    return name.translate(_FOLDING)


# --- what is known


def known_fields(speaker: Dialect) -> KnownFields:
    """The known fields of a dialect's requests."""
    kept = _KNOWN.get(speaker.name)
    if kept is None or kept[0] is not speaker:
        kept = _KNOWN[speaker.name] = speaker, _derived(speaker)
    return kept[1]


_KNOWN: dict[str, tuple[Dialect, KnownFields]] = {}


def _derived(speaker: Dialect) -> KnownFields:
    described = speaker.description
    tree: dict[str, Any] = {}
    _add(tree, getattr(speaker, "places", EMPTY))
    for name in (described.messages_field, described.system_field or "model", "model", "stream"):
        tree.setdefault(name, name)
    for row in described.host_settings:
        inner = tree
        *objects, last = row.path.split(".")
        for step in objects:
            found = inner.setdefault(step, {})
            inner = found if isinstance(found, dict) else {}
        inner.setdefault(last, row.name)
    further: frozenset[str] = getattr(speaker, "further_fields", _NONE)
    for name in described.certain_fields | described.fields | further:
        tree.setdefault(name, name)
    made = _known(tree)
    made.limits, made.answers = tuple(_paths(tree, _LIMIT)), tuple(_paths(tree, _ANSWERS))
    return made


def _add(tree: dict[str, Any], places: Mapping[str, Any]) -> None:
    for name, place in places.items():
        if isinstance(place, str):
            tree.setdefault(name, str(place))
        else:
            _add(tree.setdefault(name, {}), place)


def _known(tree: Mapping[str, Any]) -> KnownFields:
    forms: dict[str, list[str]] = {}
    for name in tree:
        forms.setdefault(folded(name), []).append(name)
    twins = {
        name: frozenset(names) - {name}
        for names in forms.values()
        if len(names) > 1
        for name in names
    }
    inside = {name: _known(inner) for name, inner in tree.items() if isinstance(inner, dict)}
    return KnownFields(
        frozenset(tree), {form: names[0] for form, names in forms.items()}, twins, inside
    )


def _paths(tree: Mapping[str, Any], wanted: str) -> Iterator[tuple[str, ...]]:
    for name, place in tree.items():
        if isinstance(place, dict):
            yield from ((name, *rest) for rest in _paths(place, wanted))
        elif place == wanted:
            yield (name,)


# --- what a client sends


def accepted(body: bytes, fields: dict[str, Raw], known: KnownFields) -> Accepted:
    """The body, whose fields are given, without fields that only look like known ones.

    Raises `InvalidRequest` if a name stands twice.
    """
    kept, losses = _checked(body, fields, known, "")
    if not losses:
        return Accepted(body, fields)
    return Accepted(_encode(kept), kept, tuple(losses))


def _checked(
    body: bytes, fields: dict[str, Raw], known: KnownFields, path: str
) -> tuple[dict[str, Raw], list[Loss]]:
    if len(fields) > _MAX_FIELDS:
        where = f"`{path[:-1]}`" if path else "the request"
        msg = f"{where} has more than {_MAX_FIELDS:,} fields"
        raise InvalidRequest(msg, status=400, param=path[:-1] or None)
    names = tuple(fields)
    usual = known.usual.get(names) or _noted(names, known)
    values = fields.values()
    # Most bodies have no room for another field, or only spaces after commas and colons.
    if len(body) - usual.least - sum(map(len, values)) >= _MIN_FIELD and (
        usual.spaced % tuple(values) != body
    ):
        _refuse(_repeated(body, fields), known, path)
    if usual.twin is not None:
        _refuse(usual.twin, known, path)
    losses = [Loss(f"{path}{meant}", _REASON) for meant in usual.lookalikes.values()]
    kept = fields
    if losses:
        kept = {name: raw for name, raw in fields.items() if name not in usual.lookalikes}
    for name in usual.inside:
        raw = bytes(fields[name])
        if raw not in (inner := known.inside[name]).clean and raw[:1] == b"{":
            left, lost = _settings(raw, inner, f"{path}{name}.")
            if lost:
                losses += lost
                kept = {**kept, name: Raw(left)}
    return kept, losses


def _noted(names: tuple[str, ...], known: KnownFields) -> _Usual:
    """What there is to know of an object from its names; remembered if they are short."""
    lookalikes: dict[str, str] = {}
    for name in names:
        if name not in known.exact and len(name) <= _LONGEST:
            meant = known.folded.get(folded(name))
            if meant is not None:
                lookalikes[name] = meant
    twins = (each for each in known.twins.keys() & names if known.twins[each] & {*names})
    keys = [b'"%b": %%b' % _bytes(name).replace(b"%", b"%%") for name in names]
    made = _Usual(
        1 + sum(map(len, names)) + 4 * len(names),
        b"{%b}" % b", ".join(keys),
        tuple([name for name in names if name in known.inside]),
        lookalikes,
        next(twins, None),
    )
    if made.least <= _MAX_CACHED_BYTES:
        if len(known.usual) >= _MAX_CACHED:
            known.usual.clear()
        known.usual[names] = made
    return made


def _settings(raw: bytes, known: KnownFields, path: str) -> tuple[bytes, list[Loss]]:
    try:
        fields = _split(raw)
    except _ODD:
        return raw, []  # reported by whoever decodes it
    kept, losses = _checked(raw, fields, known, path)
    if losses:
        return _encode(kept), losses
    if len(raw) <= _MAX_CACHED_BYTES:
        if len(known.clean) >= _MAX_CACHED:
            known.clean.clear()
        known.clean.add(raw)
    return raw, losses


def _refuse(name: str | None, known: KnownFields, path: str) -> None:
    """Raise an error that names the field if it is a known one."""
    if name is None:
        return
    meant = f"`{path}{name}`" if name in known.exact else "a field"
    msg = f"{meant} stands twice in the request: which of them counts would be up to the server"
    raise InvalidRequest(msg, status=400, param=f"{path}{name}" if name in known.exact else None)


def _bytes(name: str) -> bytes:
    return name.encode("utf-8", "surrogatepass")


def _repeated(body: bytes, fields: Mapping[str, Raw]) -> str | None:
    """A name that stands twice in an object, given its fields by name.

    Values are not parsed: those of the fields are skipped as they are, and where another value
    stands, the field is a repeated one.
    """
    place, seen = body.index(b"{") + 1, set[str]()
    for _ in fields:
        found = _name.match(body, place)
        if found is None:
            return None
        name = _text(b'"%b"' % found[1])
        raw = bytes(fields[name])
        place = found.end()
        end = _separator.match(body, place + len(raw))
        if name in seen or end is None or not body.startswith(raw, place):
            return name
        seen.add(name)
        place = end.end()
        if end[1] == b"}":
            return None
    rest = _name.match(body, place)
    return None if rest is None else _text(b'"%b"' % rest[1])


def values_at(fields: Mapping[str, Raw], paths: Iterable[tuple[str, ...]]) -> list[Any]:
    """The values at some paths of a request; nulls and missing ones are left out."""
    found: list[Any] = []
    for first, *rest in paths:
        raw = fields.get(first)
        try:
            value = None if raw is None else _value(raw)
        except _ODD:
            continue
        for step in rest:
            value = value.get(step) if isinstance(value, dict) else None
        if value is not None:
            found.append(value)
    return found


# --- decoded requests


def without_spellings(request: Request, names: Iterable[str]) -> Request:
    """The request without other spellings of settings, such as `max_tokens`, in its extras.

    A client may give a setting twice (`max_completion_tokens` beside `max_tokens`): the second one
    stays in the extras, and would be sent beside the value that overrides the first.
    """
    wanted = {*names, *(f"sampling.{name}" for name in names)}
    changed = {
        key: _without(fields, getattr(found, "places", EMPTY), wanted)
        for key, fields in request.extras.items()
        if isinstance(fields, dict) and (found := _speaker(key)) is not None
    }
    changed = {key: fields for key, fields in changed.items() if fields is not request.extras[key]}
    if not changed:
        return request
    return request.replace_unchecked(extras=freeze_mapping({**request.extras, **changed}, "extras"))


def without_fields(request: Request, name: str, fields: Iterable[str]) -> Request:
    """The request without some of the unknown fields that came in a dialect."""
    own = request.extras.get(name)
    left = {key: own[key] for key in own if key not in fields} if isinstance(own, dict) else own
    if left is None or len(left) == len(own or ()):
        return request
    extras = freeze_mapping({**request.extras, name: left}, "extras")
    return request.replace_unchecked(extras=extras)


_INNER = frozenset({
    "abort_reason", "action", "annotations", "approval_request_id", "approve", "args",
    "arguments", "cache_control", "call_id", "caller", "citations", "cited_text", "clear_at",
    "closed", "code", "codeExecutionResult", "commands", "container_id", "content", "context",
    "custom", "data", "defer_loading", "description", "detail", "diff", "displayName",
    "document_index", "document_name", "document_title", "document_url", "effort", "enabled",
    "encrypted_content", "end_block_index", "end_char_index", "endOffset", "error",
    "executableCode", "execution", "exit_code", "file", "file_data", "file_id", "file_uri",
    "file_url", "fileData", "filename", "fileUri", "format", "fps", "function", "functionCall",
    "functionResponse", "id", "image_url", "images", "index", "inline_data", "inlineData",
    "input", "input_audio", "input_schema", "is_error", "level", "logprobs", "media_type",
    "mediaResolution", "mime_type", "mimeType", "mode", "name", "namespace", "operation",
    "outcome", "output", "output_config", "parameters", "path", "payload",
    "pending_safety_checks", "phase", "prompt_cache_breakpoint", "queries", "query", "reasoning",
    "reasoning_content", "refusal", "response", "results", "retrieved_at", "return_code", "role",
    "scope", "server_label", "server_name", "signature", "source", "start_block_index",
    "start_char_index", "startOffset", "status", "stderr", "stdout", "stop_reason", "strict",
    "summary", "text", "thinking", "thought", "thoughtSignature", "timeout_ms", "title", "tool",
    "tool_call_id", "tool_calls", "tool_id", "tool_name", "tool_references", "tool_type",
    "tool_use_id", "toolCall", "toolResponse", "tools", "ttl", "type", "url", "video_url",
    "videoMetadata",
})  # fmt: skip
"""Fields of messages, of parts, and of the objects in them, in any dialect."""
_FREE = frozenset({
    "args", "arguments", "input_schema", "parameters", "properties", "response", "schema",
})  # fmt: skip
"""Those whose value has names of the user's own."""


def _same_case(name: str) -> str:
    """A name as Go's decoder compares it."""
    return name.upper().lower()


_INNER_BY_CASE = {_same_case(name): name for name in _INNER}


def without_lookalikes(request: Request, speaker: Dialect) -> tuple[Request, tuple[Loss, ...]]:
    """The request without unknown fields of messages and parts that only look like known ones.

    Whoever reads the decoded messages does not see such a field, and a provider might.
    """
    form, name = speaker.description.messages, speaker.name
    told = {"role", form.content_field, *(form.fields or ()), *form.own_fields}
    known = {folded(each): each for each in told}
    inside = {
        folded(each): each for each in ("type", "text", form.content_field, *form.part_fields)
    }
    losses: list[Loss] = []
    messages: list[Message] = []
    for number, message in enumerate(request.messages):
        path = f"messages[{number}]"
        left = _without_lookalikes(message, name, known, path, losses)
        parts = _parts_without(message.parts, name, inside, path, losses)
        messages.append(left if parts is message.parts else left.replace_unchecked(parts=parts))
    if not losses:
        return request, ()
    return request.replace_unchecked(messages=tuple(messages)), tuple(losses)


def _parts_without(
    parts: tuple[Any, ...], name: str, known: Mapping[str, str], path: str, losses: list[Loss]
) -> tuple[Any, ...]:
    made: list[Any] = []
    for place, part in enumerate(parts):
        at = f"{path}.parts[{place}]"
        left = _without_lookalikes(part, name, known, at, losses)
        if isinstance(part, ToolResult) and isinstance(part.content, tuple):
            content = _parts_without(part.content, name, known, at, losses)
            if content is not part.content:
                left = left.replace_unchecked(content=content)
        made.append(left)
    return parts if all(map(is_, parts, made)) else tuple(made)


def _without_lookalikes(
    owner: OwnerT, name: str, known: Mapping[str, str], path: str, losses: list[Loss]
) -> OwnerT:
    own = owner.extras.get(name) if owner.extras is not EMPTY else None
    if not isinstance(own, dict):
        return owner
    left = _fields_without(own, known, path, losses)
    if left is own:
        return owner
    extras = freeze_mapping({**owner.extras, name: left}, "extras")
    return owner.replace_unchecked(extras=extras)


def _fields_without(
    own: Mapping[str, Any], known: Mapping[str, str], path: str, losses: list[Loss]
) -> Mapping[str, Any]:
    left: dict[str, Any] = {}
    for key, value in own.items():
        if key in _INNER:
            left[key] = value if key in _FREE else _value_without(value, f"{path}.{key}", losses)
            continue
        meant = None
        if len(key) <= _LONGEST:
            meant = known.get(folded(key)) or _INNER_BY_CASE.get(_same_case(key))
        if meant in {None, key}:
            left[key] = value
        else:
            losses.append(Loss(f"{path}.{meant}", _REASON))
    return own if all(left.get(key) is own[key] for key in own) else left


def _value_without(value: Any, path: str, losses: list[Loss]) -> Any:
    if isinstance(value, dict):
        return _fields_without(value, {}, path, losses)
    if isinstance(value, (list, tuple)):
        found = [_value_without(each, path, losses) for each in value]
        return value if all(map(is_, found, value)) else found
    return value


def _speaker(key: str) -> Dialect | None:
    if is_spelling(key):
        return None
    try:
        return dialect(key)
    except ConfigError:
        return None


def _without(fields: Any, places: Mapping[str, Any], wanted: set[str]) -> Any:
    left = dict(fields)
    for name in fields.keys() & places.keys():
        place = places[name]
        if isinstance(place, str):
            if str(place) in wanted:
                del left[name]
        elif isinstance(fields[name], dict):
            left[name] = _without(fields[name], place, wanted)
    is_same = len(left) == len(fields) and all(left[name] is fields[name] for name in fields)
    return fields if is_same else left
