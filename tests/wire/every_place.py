"""Wrong values at every place of every body, response and stream that was recorded or made.

`python -m tests.wire.every_place` puts each of `VALUES` at each place that the bodies have, does
everything with the result, and prints what raised an exception that is not ours, by type and
function. A place that several bodies share, as `messages[*].content` of the same dialect, gets
every value once, and one value in each further body that the random mutations start from, too.
`--share 3/8` does a part of it. All of it is 860,000 changed bodies, made of 8,000, and takes some
forty minutes of CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import dragoman
from dragoman import Encoded, Front, Messages, Request, Response
from dragoman.model.events import Event
from tests.wire.mutations import (
    DIALECTS,
    GEMINI_PATH,
    ForeignError,
    Seed,
    StuckError,
    attempt,
    limit,
    recorded,
    seeds,
    take_error,
    targets,
    where,
)

_SLOW = 2.0
"""In seconds of CPU, for one body: reported by a run of this module."""
_PATIENCE = 60
_Path = tuple[Any, ...]


class Raw(NamedTuple):
    """JSON that Python's `json` doesn't write, as it stands in the body."""

    text: bytes


def _nested(levels: int, before: str, after: str) -> Raw:
    return Raw((before * levels + "1" + after * levels).encode())


Change = Callable[[Any], Any]


def _always(value: Any) -> Change:
    return lambda _: value


def _joined(old: Any) -> Any:
    """A text that ends in half a character; keeps what the text begins with."""
    return f"{old}\ud800" if isinstance(old, str) else {"\ud800": old}


def _other_container(old: Any) -> Any:
    """A list as an object, an object as a list, anything else as a list."""
    if isinstance(old, dict):
        return list(old.values())
    return {str(n): each for n, each in enumerate(old)} if isinstance(old, list) else [old]


def _other_scalar(old: Any) -> Any:
    """An integer as a float or text, a text as an integer, a container as its text."""
    match old:
        case bool():
            return str(old)
        case int():
            return old + 0.5
        case float():
            return str(old)
        case str():
            return len(old)
        case _:
            return json.dumps(old)


def _and_odd(old: Any) -> Any:
    """A container with strangers among what it has."""
    if isinstance(old, list):
        return [None, *old, 5, "\ud800", {}, []]
    return {**old, "": None, "\ud800": "\ud800", "type": 5} if isinstance(old, dict) else [None]


VALUES: dict[str, Change] = {
    "null": _always(None), "true": _always(True), "zero": _always(0), "minus": _always(-1),
    "minus zero": _always(-0.0), "half": _always(0.5), "whole float": _always(5.0),
    "large float": _always(1e308), "2**63": _always(2**63), "2**64": _always(2**64),
    "400 digits": _always(10**400), "5000 digits": _always(Raw(b"1" + b"0" * 5000)),
    "1e400": _always(Raw(b"1e400")), "-1e400": _always(Raw(b"-1e400")),
    "NaN": _always(Raw(b"NaN")), "Infinity": _always(float("inf")), "nan": _always(float("nan")),
    "empty": _always(""), "x": _always("x"), "NUL": _always("\0"), "open": _always("{"),
    "digits": _always("9" * 5000), "surrogate": _always("\ud800"), "pair": _always("\udfff\ud800"),
    "with surrogate": _joined, "no UTF-8": _always(Raw(b'"\xff"')),
    "surrogate in UTF-8": _always(Raw(b'"\xed\xa0\x80"')),
    "list": _always([]), "object": _always({}), "[null]": _always([None]), "[5]": _always([5]),
    "texts": _always(["x", "\ud800"]), "lists": _always([[], [[]]]), "objects": _always([{}]),
    "typeless": _always({"type": None}), "type list": _always([{"type": []}]),
    "type surrogate": _always({"type": "\ud800"}), "empty key": _always({"": {"": None}}),
    "surrogate key": _always({"\ud800": "x"}),
    "keys twice": _always(Raw(b'{"type":"text","type":5}')),
    "in a list": lambda old: [old], "in an object": lambda old: {"a": old},
    "other container": _other_container, "other scalar": _other_scalar, "strangers": _and_odd,
    "100 lists": lambda _: _nested(100, "[", "]"), "900 lists": lambda _: _nested(900, "[", "]"),
    "900 objects": lambda _: _nested(900, '{"a":', "}"),
    "100000 lists": lambda _: _nested(100_000, "[", "]"),
}  # fmt: skip
"""By name: what is put in a place, given what was there."""
_NAMES = list(VALUES)
_KEYS = ("removed", "renamed", "unnamed", "twice")
"""Done to the key of an object's field."""
CHANGES = (*_NAMES, *_KEYS)
_MARK = re.compile(rb'"\\u0000@(\d+)@"')


# --- places


def paths_in(value: Any) -> Iterator[tuple[_Path, str]]:
    """Every place below a value, and a text that places of the same meaning share."""
    pending: list[tuple[Any, _Path, str]] = [(value, (), "")]
    while pending:
        holder, path, shape = pending.pop()
        if isinstance(holder, dict):
            kind = holder.get("type") or holder.get("role")
            mark = kind if isinstance(kind, str) and len(kind) < 40 else ""
            inner = [(key, f"{shape}.{mark}:{key}") for key in holder]
        else:
            inner = [(at, f"{shape}[]") for at in range(len(holder))]
        for key, at in inner:
            yield (*path, key), f"{at}={type(holder[key]).__name__}"
            if isinstance(holder[key], (dict, list)):
                pending.append((holder[key], (*path, key), at))


def changed(body: Any, path: _Path, change: str) -> tuple[Any, bytes]:
    """The body with one place changed: as Python values, if they can hold it, and as JSON."""
    raws: list[bytes] = []
    twice: list[bytes] = []

    def mark(text: bytes) -> str:
        raws.append(text)
        return f"\0@{len(raws) - 1}@"

    def rebuilt(value: Any, depth: int) -> Any:
        if depth == len(path):
            found = VALUES[change](value)
            return mark(found.text) if isinstance(found, Raw) else found
        key = path[depth]
        if depth == len(path) - 1 and change in _KEYS:
            return _with_key(value, key, change, twice)
        copied: Any = value.copy()
        copied[key] = rebuilt(value[key], depth + 1)
        return copied

    made = rebuilt(body, 0)
    written = json.dumps(made).encode()
    if raws:
        written = _MARK.sub(lambda found: raws[int(found[1])], written)
        made = None
    if twice:
        written = written.replace(b'"\\u0000twice"', twice[0])
        made = None
    return made, written


def _with_key(holder: Any, key: Any, change: str, twice: list[bytes]) -> Any:
    if isinstance(holder, list):
        others = [each for at, each in enumerate(holder) if at != key]
        return others if change == "removed" else [*holder, holder[key]]
    rest = {name: each for name, each in holder.items() if name != key}
    if change == "removed":
        return rest
    if change != "twice":
        return {**rest, "\ud800" if change == "renamed" else "": holder[key]}
    twice.append(json.dumps(key).encode())
    return {**holder, "\0twice": {"a": [None]}}


# --- cases


class Case(NamedTuple):
    """A body with one change; `line` is the line of a stream that has it."""

    seed: Seed
    path: _Path
    change: str
    line: int = -1

    def __str__(self) -> str:
        where_ = f" line {self.line}" if self.line >= 0 else ""
        return (
            f"{self.change} at {list(self.path)} of a {self.seed.dialect} {self.seed.kind}{where_}"
        )


def _bodies(seed: Seed) -> Iterator[tuple[int, Any]]:
    if seed.kind != "stream":
        yield -1, seed.value
        return
    for number, line in enumerate(seed.value.split("\n")):
        found = _json_of(line)
        if found is not None:
            yield number, found[1]


@lru_cache(2048)
def _json_of(line: str) -> tuple[str, Any] | None:
    head, brace, inner = line.partition("{")
    if not brace or (head.strip() and not head.startswith("data:")):
        return None
    try:
        return head, json.loads(brace + inner)
    except ValueError:
        return None


def cases() -> Iterator[Case]:
    """All changes, at each place of a meaning; one of them where the seeds have it again."""
    seen: Counter[tuple[str, str, str]] = Counter()
    for seed, is_rare in chain(((seed, False) for seed in seeds()),
                               ((seed, True) for seed in recorded())):  # fmt: skip
        for line, body in _bodies(seed):
            for path, shape in paths_in(body):
                known = (seed.kind, seed.dialect, shape)
                if not seen[known]:
                    yield from [Case(seed, path, change, line) for change in CHANGES]
                elif not is_rare:
                    yield Case(seed, path, CHANGES[seen[known] % len(CHANGES)], line)
                seen[known] += 1


# --- operations


@cache
def _hosts() -> list[Any]:
    return [target for _, target in targets() if target is not None]


def _shown(*values: Any) -> None:
    for value in values:
        attempt("repr", repr, value)
        attempt("str", str, value)


def _send(request: Request, number: int) -> None:
    _shown(request, *request.tools, *request.messages)
    raw = attempt("Request.to_json", request.to_json)
    if raw is not None:
        attempt("Request.from_json", Request.from_json, raw)
    hosts = _hosts()
    host = hosts[number % len(hosts)]
    for name, target in [*((name, None) for name in DIALECTS), (host.dialect, host)]:
        speaker = dragoman.dialect(name)
        encoded: Encoded | None = attempt(
            f"{name}.encode_request", speaker.encode_request, request, target
        )
        if encoded is not None:
            _shown(encoded, *encoded.losses, *encoded.repairs)
            written = attempt("to_bytes", encoded.to_bytes)
            if written is not None and number % 5 == 0:
                _shown(*(attempt(f"{name}.check", speaker.check, written) or ()))


def request_taken(dialect: str, body: Any, written: bytes, number: int) -> None:
    """Detect, check, translate and decode a request, given as values and as bytes."""
    speaker = dragoman.dialect(dialect)
    forms = [written] if body is None else [written, body]
    for form in forms:
        attempt("detect", dragoman.detect, form)
        _shown(*(attempt(f"{dialect}.check", speaker.check, form, GEMINI_PATH) or ()))
        for host in (DIALECTS[number % len(DIALECTS)], ("groq:m", "google:g")[number % 2]):
            encoded = attempt("translate", dragoman.translate, form, source=dialect, target=host)
            _shown(encoded)
            if encoded is not None:
                attempt("to_bytes", encoded.to_bytes)
    form = forms[number % len(forms)]
    request = attempt(f"{dialect}.decode_request", speaker.decode_request, form, path=GEMINI_PATH)
    if isinstance(body, dict):
        attempt("Messages.from_any", Messages.from_any, body.get(speaker.messages_field))
    if request is not None:
        _send(request, number)
        front = Front(dialect, request)
        _shown(front)
        encoded = attempt("Front.response", front.response, _answer())
        if encoded is not None:
            attempt("to_bytes", encoded.to_bytes)
        encoder = front.stream()
        for event in _events():
            attempt("Front.stream", encoder.feed, event)
        attempt("Front.stream", encoder.close)


@cache
def _answer() -> Response:
    body = {
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}]
    }
    return dragoman.dialect("openai-chat").decode_response(body)


@cache
def _events() -> list[Event]:
    decoder = dragoman.dialect("ollama").stream_decoder()
    said = b'{"message":{"role":"assistant","content":"x"},"done":true,"done_reason":"stop"}\n'
    return [*decoder.feed(said), *decoder.close()]


@cache
def _asked() -> Request:
    return Request(model="m", messages=tuple(Messages.from_any(["hi"])))


def _answered(response: Response, number: int) -> None:
    _shown(response, *response.choices, response.usage)
    raw = attempt("Response.to_json", response.to_json)
    if raw is not None:
        attempt("Response.from_json", Response.from_json, raw)
    for name in DIALECTS:
        speaker = dragoman.dialect(name)
        fronts = Front(name, _asked())
        for write in (speaker.encode_response, fronts.response):
            encoded: Encoded | None = attempt(f"{name}.encode_response", write, response)
            if encoded is not None:
                _shown(encoded, *encoded.losses, *encoded.repairs)
                attempt("to_bytes", encoded.to_bytes)
    said = attempt("Response.message", getattr, response, "message")
    if said is None:
        return
    later = Request(model="m", messages=(*_asked().messages, said))
    name = DIALECTS[number % len(DIALECTS)]
    attempt(f"{name}.encode_request", dragoman.dialect(name).encode_request, later)


def response_taken(dialect: str, body: Any, written: bytes, number: int) -> None:
    """Detect and decode a response, and write it for every client and the next request."""
    speaker = dragoman.dialect(dialect)
    forms = [written] if body is None else [written, body]
    for form in forms:
        attempt("detect", dragoman.detect, form)
        response = attempt(f"{dialect}.decode_response", speaker.decode_response, form)
        attempt(f"{dialect}.decode_error", speaker.decode_error, 500, form)
        if response is not None and form is forms[number % len(forms)]:
            _answered(response, number)


def stream_taken(dialect: str, written: bytes, number: int) -> None:
    """Decode a stream, and write it for every client."""
    decoder = dragoman.dialect(dialect).stream_decoder()
    events = list(attempt(f"{dialect}.stream_decoder", decoder.feed, written) or ())
    events += attempt(f"{dialect}.stream_decoder.close", decoder.close) or ()
    _shown(*events)
    for name in DIALECTS:
        fronts = Front(name, _asked())
        for make in (dragoman.dialect(name).stream_encoder, fronts.stream):
            encoder = make()
            for event in events:
                attempt(f"{name}.stream_encoder", encoder.feed, event)
            attempt(f"{name}.stream_encoder.close", encoder.close)
            _shown(*encoder.losses, *encoder.repairs)
    response = attempt(f"{dialect}.stream_decoder.response", getattr, decoder, "response")
    if response is not None:
        _answered(response, number)


def _canonical_taken(kind: str, written: bytes, number: int) -> None:
    if kind == "canonical messages":
        messages = attempt("Messages.from_json", Messages.from_json, written)
        if messages is not None:
            _send(Request(model="m", messages=tuple(messages)), number)
    elif kind == "canonical response":
        response = attempt("Response.from_json", Response.from_json, written)
        if response is not None:
            _answered(response, number)
    else:
        request = attempt("Request.from_json", Request.from_json, written)
        if request is not None:
            _send(request, number)


def take(case: Case, number: int) -> None:
    """Do everything possible with a case; raises `ForeignError`."""
    seed = case.seed
    if seed.kind == "stream":
        stream_taken(seed.dialect, written(case), number)
        return
    body, raw = changed(seed.value, case.path, case.change)
    if seed.kind == "request":
        request_taken(seed.dialect, body, raw, number)
    elif seed.kind == "response":
        response_taken(seed.dialect, body, raw, number)
    elif seed.kind == "error":
        take_error(seed.dialect, raw if body is None else body)
    else:
        _canonical_taken(seed.kind, raw, number)


def written(case: Case) -> bytes:
    """The body of a case as bytes, a stream as a whole."""
    seed = case.seed
    if seed.kind != "stream":
        return changed(seed.value, case.path, case.change)[1]
    lines = seed.value.split("\n")
    whole = [line.encode("utf-8", "surrogatepass") for line in lines]
    found = _json_of(lines[case.line]) if case.line >= 0 else None
    if found is not None:
        whole[case.line] = found[0].encode() + changed(found[1], case.path, case.change)[1]
    return b"\n".join(whole)


def sampled(part: int, parts: int) -> Iterator[tuple[int, Case]]:
    """One part of all cases, spread evenly; each with its number."""
    for number, case in enumerate(cases()):
        if number % parts == part:
            yield number, case


@cache
def _by_kind() -> list[list[Seed]]:
    found: dict[tuple[str, str], list[Seed]] = {}
    for seed in seeds():
        found.setdefault((seed.kind, seed.dialect), []).append(seed)
    return list(found.values())


def one(number: int) -> Case | None:
    """Any case; every dialect, kind of body, place and change is as likely as another.

    The same number gives the same case with the same recordings; `None` for a stream without JSON.
    """
    rng = random.Random(number)
    seed = rng.choice(rng.choice(_by_kind()))
    line, body = rng.choice([*_bodies(seed)] or [(-1, {})])
    places = [*paths_in(body)]
    return Case(seed, rng.choice(places)[0], rng.choice(CHANGES), line) if places else None


def _made(dialect: str, *, is_stream: bool) -> Any:
    """An answer of a dialect of which none is recorded here."""
    speaker = dragoman.dialect(dialect)
    if not is_stream:
        return speaker.encode_response(_answer()).body
    encoder = speaker.stream_encoder()
    return b"".join([*map(encoder.feed, _events()), encoder.close()]).decode()


def odd_answer(dialect: str, number: int, *, is_stream: bool) -> bytes:
    """The bytes of a recorded response or stream of a dialect, with one change."""
    rng = random.Random(number)
    kind = "stream" if is_stream else "response"
    known = [each for each in seeds() if (each.kind, each.dialect) == (kind, dialect)]
    seed = rng.choice(known or [Seed(kind, dialect, _made(dialect, is_stream=is_stream))])
    bodies = [*_bodies(seed)]
    line, body = rng.choice(bodies) if bodies else (-1, {"": None})
    path, _ = rng.choice([*paths_in(body)] or [(("",), "")])
    return written(Case(seed, path, rng.choice(CHANGES), line))


# --- long runs


def main() -> int:
    """Run a share of all cases; returns the number of classes found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", default="0/1")
    parser.add_argument("--kind", default="")
    options = parser.parse_args()
    part, parts = map(int, options.share.split("/"))
    limit()
    classes: Counter[str] = Counter()
    ran: Counter[str] = Counter()
    begun = time.process_time()
    for number, case in sampled(part, parts):
        if options.kind and case.seed.kind != options.kind:
            continue
        ran[case.seed.kind] += 1
        started = time.process_time()
        signal.alarm(_PATIENCE)
        try:
            take(case, random.Random(number).randrange(1000))
        except (ForeignError, MemoryError, StuckError, RecursionError) as error:
            cause = error.__cause__ or error
            known = where(cause)
            if known not in classes:
                print(f"{number}: {error} {known}: {str(cause)[:80]}: {case}", flush=True)  # noqa: T201
            classes[known] += 1
        finally:
            signal.alarm(0)
        took = time.process_time() - started
        if took > _SLOW:
            print(f"{number}: slow {took:.1f}s: {case}", flush=True)  # noqa: T201
    spent = time.process_time() - begun
    bodies = len(seeds()) + sum(1 for _ in recorded())
    print(f"{bodies} bodies, {ran.total()} changed {dict(ran)}, {spent:.0f}s CPU")  # noqa: T201
    for known, count in classes.most_common():
        print(f"{count:6} {known}")  # noqa: T201
    return len(classes)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
