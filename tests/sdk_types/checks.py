"""Checks of generated bodies: a round trip changes nothing, and nothing is lost silently."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

import dragoman
from dragoman import DragomanError
from dragoman.errors import InvalidInputError
from dragoman.model.events import StreamError
from dragoman.wire.encoded import Encoded
from dragoman.wire.envelope import PREFIX, unwrap
from tests.sdk_types.bodies import Body
from tests.sdk_types.streams import Stream, StreamSource
from tests.wire.recorded import normal
from tests.wire.streamed import folded, written
from tests.wire.streamed import read as seen

# A part, a tool, a setting: the least that a loss must name.
_PLACE = re.compile(
    r"((?:messages\[\d+\]|choices\[\d+\](?:\.message)?)(?:\.parts\[\d+\])?|system\[\d+\]|"
    r"tools\[\d+\]|[a-z_]+(?:\.[A-Za-z_]+)?)"
)
# Ids, times and positions, which every dialect generates itself.
_IDENTITY = re.compile(
    r"^(id|object|created|created_at|createTime|responseId|item_id|call_id|tool_call_id|"
    r"tool_use_id|response_id|approval_request_id|total_tokens|totalTokenCount|index|obfuscation)$"
)
_APART = frozenset({"events", "error.extras.param", "error.extras.code"})
# Unknown fields of Gemini's tools are kept with the request.
_AMONG_TOOLS = re.compile(r"^extras\.\$wire\.tools\[\d+\]\.rest\.")
_ENVELOPE = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9+/_=-]*")


# Counts that include others in some dialects only, and are sent as sums or differences.
_COUNTS = re.compile(
    r"^((input|output|prompt|completion)_tokens|(prompt|candidates)TokenCount|eval_count|"
    r"prompt_eval_count)$"
)


@dataclass(frozen=True)
class Read:
    """A decoded body, and how to encode it."""

    body: Body
    value: Any

    def written(self, dialect: str) -> Encoded:
        """The body in a dialect."""
        speaker = dragoman.dialect(dialect)
        if self.body.kind == "request":
            return speaker.encode_request(self.value)
        return speaker.encode_response(self.value)


def read(body: Body, wire: dict[str, Any] | None = None) -> Read:
    """A generated body, decoded in its own dialect."""
    speaker = dragoman.dialect(body.dialect)
    sent = json.loads(json.dumps(body.wire if wire is None else wire))
    if body.kind == "request":
        return Read(body, speaker.decode_request(sent, path=body.path))
    return Read(body, speaker.decode_response(sent))


def change(body: Body, wire: dict[str, Any]) -> str | None:
    """What is wrong with a body after a round trip, or None."""
    try:
        encoded = read(body, wire).written(body.dialect)
    except DragomanError as error:
        return f"{type(error).__name__}: {error}"
    found = normal(json.loads(encoded.to_bytes()))
    given = normal(json.loads(json.dumps(wire)))
    if found == given:
        notes = (*encoded.losses, *encoded.repairs)
        return f"equal, but reported: {notes[0]}" if notes else None
    report = "reported" if encoded.losses or encoded.repairs else "without a word"
    return f"changed, {report}: {'; '.join(_differences(given, found))}"


def repair(body: Body, wire: dict[str, Any]) -> str | None:
    """What is wrong with a request to its own vendor, or None.

    If `check` finds nothing, it must be unchanged; every change must be reported.
    """
    speaker = dragoman.dialect(body.dialect)
    given = json.loads(json.dumps(wire))
    request = speaker.decode_request(given, path=body.path)
    encoded = speaker.encode_request(request, speaker.target)
    found, given = normal(json.loads(encoded.to_bytes())), normal(given)
    if found == given:
        return None
    changes = "; ".join(_differences(given, found))
    if not any(each.severity == "error" for each in speaker.check(wire, body.path)):
        return f"changed, though nothing was wrong: {changes}"
    return None if encoded.losses or encoded.repairs else f"changed, without a word: {changes}"


def _differences(one: Any, other: Any, path: str = "$") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key in one and key in other:
                yield from _differences(one[key], other[key], f"{path}.{key}")
            else:
                yield f"{path}.{key} is {'gone' if key in one else 'new'}"
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, f"{path}[{index}]")
    elif one != other:
        yield f"{path} differs"


def silent(body: Body, target: str) -> list[str]:
    """The sentinels that are neither in the target's body nor covered by a loss or repair."""
    given = read(body)
    try:
        encoded = given.written(target)
    except InvalidInputError as error:
        told = "whole conversation is stored" in str(error)  # nothing but references and summaries
        return [] if told else [f"{type(error).__name__}: {error}"]
    except DragomanError as error:
        return [f"{type(error).__name__}: {error}"]
    return unaccounted(
        body.wire, body.sentinels, given.value, json.dumps(encoded.body) + (encoded.path or ""),
        [*(loss.path for loss in encoded.losses), *(repair.path for repair in encoded.repairs)],
    )  # fmt: skip


def stream_problems(stream: Stream, source: StreamSource, target: str) -> list[str]:
    """What is wrong with a stream after decoding it and encoding it in a dialect.

    In its own dialect, the SDK's types accept it and the response is equal; in any dialect, nothing
    is lost silently.
    """
    decoder = dragoman.dialect(stream.body.dialect).stream_decoder()
    try:
        events = [*decoder.feed(stream.bytes), *decoder.close()]
    except DragomanError as error:
        return [f"{type(error).__name__}: {error}"]
    output, losses = written(target, events)
    told = [loss.path for loss in losses]
    found = unaccounted(stream.events, stream.body.sentinels, folded(events), output.decode(), told)
    if any(isinstance(event, StreamError) for event in events):
        found = [each for each in found if not each.startswith("model at")]  # the model that failed
    if target != stream.body.dialect:
        return found
    found += [f"reported: {loss.reason} at {loss.path}" for loss in losses]
    if not source.problems(stream.bytes):  # some cases have fields that the SDK never sends
        found += source.problems(output)
    if not any(isinstance(event, StreamError) for event in events):
        speaker = dragoman.dialect(target)
        again = speaker.encode_response(seen(target, output).response).body
        if normal(again) != normal(speaker.encode_response(decoder.response).body):
            found.append("it says something else")
    return found


def unaccounted(
    wire: Any, sentinels: Any, value: Any, output: str, reported: Iterable[str]
) -> list[str]:
    """Like `silent`, for anything decoded and encoded."""
    source = json.dumps(wire)
    output += "".join(_unwrapped(output))
    missing = [
        token for token, name in sentinels.items()
        if token in source and not _IDENTITY.search(name) and not _COUNTS.search(name)
        and token not in output and _in_base64(token) not in output
    ]  # fmt: skip
    if not missing:
        return []
    places = {_place(path) for path in reported}
    told = set(reported)
    where = _paths(msgspec.to_builtins(value, enc_hook=dict), frozenset(missing))
    found: list[str] = []
    for token in missing:
        paths = where.get(token, [])
        if not paths and told & _APART:
            continue  # it was in an event that is not part of the response
        if not any(_place(path) in places or _is_under(path, told) for path in paths):
            found.append(f"{sentinels[token]} at {paths[0] if paths else 'nowhere'}")
    return found


def _in_base64(token: str) -> str:
    """A document's text, as other dialects represent it."""
    return b64encode(token.encode()).decode()


def _unwrapped(output: str) -> Iterator[str]:
    """The contents of envelopes in a body: state that the client sends back unchanged."""
    for envelope in _ENVELOPE.findall(output):
        seal = unwrap(envelope)
        if seal is not None:
            yield msgspec.json.encode(seal).decode()


def _place(path: str) -> str:
    found = _PLACE.match(path)
    return found[0] if found else path


def _is_under(path: str, told: set[str]) -> bool:
    return any(path == known or path.startswith((f"{known}.", f"{known}[")) for known in told)


def _paths(value: Any, tokens: frozenset[str]) -> dict[str, list[str]]:
    """The paths of tokens in a value, with extras of all dialects in one place."""
    found: dict[str, list[str]] = {}

    def look(inner: Any, path: str, *, is_named: bool = False) -> None:
        if isinstance(inner, dict):
            for key, each in inner.items():
                note(str(key), path)
                step = path if is_named else f"{path}.{key}" if path else str(key)
                look(each, step, is_named=key == "extras" and not is_named)
        elif isinstance(inner, (list, tuple)):
            for index, each in enumerate(inner):
                look(each, f"{path}[{index}]")
        elif isinstance(inner, (str, int, float)):
            note(str(inner), path)

    def note(text: str, path: str) -> None:
        path = _AMONG_TOOLS.sub("extras.", path)
        for token in tokens:
            if token in text or _in_base64(token) in text:
                found.setdefault(token, []).append(path)

    look(value, "")
    return found
