"""Replays recorded traffic instead of using the network, for tests."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from itertools import islice
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Any, Literal, NamedTuple

from dragoman.errors import InvalidInputError, NotRecorded, StreamInterrupted, TransportError
from dragoman.model.jsontext import dumps_sorted, loads
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport
from dragoman.transport.recordings import (
    Exchange,
    RecordedReply,
    RecordedRequest,
    append_exchange,
    come_headers,
    pack,
    place_of,
    read_recording,
    secrets_in,
    sent_headers,
    unpack,
    without_secrets,
)

_STEP = re.compile(r"\[(\*|\d+)\]|\.?([^.\[\]]+)")
_SAFE_KEY = re.compile(r"[A-Za-z_$][\w$-]{0,39}", re.ASCII)
_MAX_DIFFERENCES = 200  # maximum differences counted: more is simply another request

Steps = tuple[str, ...]


class Asked(NamedTuple):
    """A request, reduced to what is compared."""

    method: str
    place: str
    body: Any
    """The JSON value, or the bytes if it isn't JSON."""

    @property
    def key(self) -> tuple[str, str, bytes]:
        """Equal for equal requests, whatever the order of their fields."""
        return (self.method, self.place, _canonical(self.body))


def asked(method: str, place: str, body: bytes | None, ignored: Sequence[Steps] = ()) -> Asked:
    """A request to compare, without the ignored parts of its body."""
    value = _value(body)
    for steps in ignored:
        value = _without(value, steps)
    return Asked(method.upper(), place, value)


def steps_of(path: str) -> Steps:
    """The steps of a path into JSON.

    >>> steps_of("$.messages[*].id")
    ('messages', '*', 'id')
    """
    rest = path.removeprefix("$")
    steps = tuple(found[1] or found[2] for found in _STEP.finditer(rest))
    if not steps or "".join(found[0] for found in _STEP.finditer(rest)) != rest:
        msg = "an ignored path must look like metadata.user_id or messages[*].id"
        raise InvalidInputError(msg)
    return steps


def _value(body: bytes | None) -> Any:
    if body is None or body.lstrip()[:1] not in {b"{", b"["}:
        return body
    try:
        return loads(body)
    except InvalidInputError:
        return body


def _without(value: Any, steps: Steps) -> Any:
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        hit = {key for key in value if step in {"*", key}}
        kept = {key: item for key, item in value.items() if rest or key not in hit}
        return {key: _without(item, rest) if key in hit else item for key, item in kept.items()}
    if isinstance(value, list):
        return [
            _without(item, rest) if rest and step in {"*", str(place)} else item
            for place, item in enumerate(value)
            if rest or step not in {"*", str(place)}
        ]
    return value


def _canonical(value: Any) -> bytes:
    if isinstance(value, bytes) or value is None:
        return value or b""
    return dumps_sorted(value)


# --- differences


def differences(one: Asked, other: Asked) -> list[str]:
    """The paths at which two requests differ, without their values."""
    return list(islice(_differences(one, other), _MAX_DIFFERENCES))


def _differences(one: Asked, other: Asked) -> Iterator[str]:
    if one.method != other.method:
        yield "the method"
    path, query = one.place.partition("?")[::2]
    other_path, other_query = other.place.partition("?")[::2]
    yield from _at_steps(path.split("/"), other_path.split("/"))
    if query != other_query:
        yield "the query"
    yield from _at(one.body, other.body, "$")


def _at_steps(one: list[str], other: list[str]) -> Iterator[str]:
    """The URL path segments that differ; a wrong URL outweighs anything in the body."""
    if one == other:
        return
    if len(one) != len(other):
        yield "the URL path"
    else:
        places = [
            place for place, pair in enumerate(zip(one, other, strict=True)) if len({*pair}) > 1
        ]
        yield from (f"segment {place} of the URL path" for place in places)


def _at(one: Any, other: Any, path: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in [*one, *(key for key in other if key not in one)]:
            place = f"{path}.{_shown(key)}"
            if key in one and key in other:
                yield from _at(one[key], other[key], place)
            else:
                yield f"{place} ({'only' if key in one else 'not'} in the request)"
    elif isinstance(one, list) and isinstance(other, list):
        for index, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from _at(left, right, f"{path}[{index}]")
        if len(one) != len(other):
            yield f"{path} ({len(one)} items in the request, {len(other)} in the recording)"
    elif one != other or isinstance(one, bool) is not isinstance(other, bool):
        yield path


def _shown(key: str) -> str:
    """A field name; hidden if it may be user content."""
    return key if _SAFE_KEY.fullmatch(key) else "*"


Mode = Literal["replay", "record", "auto"]
_MODES = ("replay", "record", "auto")
_MAX_SHOWN = 5


class ReplayTransport:
    """Replays a recording, or makes one.

    ```python
    client = Client("openai:gpt-4o", transport=ReplayTransport("tests/chat.jsonl"))
    ```

    `mode` is `replay` (never uses the network; a request that is not in the file raises
    `NotRecorded`), `record` (always uses the network, and rewrites the file) or `auto` (uses the
    network for requests that are not in the file, and appends them). Requests match if method, URL
    (without host) and JSON body are equal; `ignore` lists paths in the body that are ignored, such
    as `messages[*].id`. A repeated request gets the next recording of it.

    Keys and cookies are not recorded; bodies are, unchanged. `secrets` names further headers or
    query parameters to keep out of the file.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        mode: Mode = "replay",
        *,
        transport: Transport | None = None,
        ignore: Iterable[str] = (),
        secrets: Iterable[str] = (),
    ) -> None:
        if mode not in _MODES:
            msg = f"mode must be one of {', '.join(_MODES)}"
            raise InvalidInputError(msg)
        self._path, self._mode = Path(path), mode
        self._inner, self._owns_inner = transport, transport is None
        self._ignored = tuple(map(steps_of, ignore))
        self._secrets = frozenset(name.lower() for name in secrets)
        self._lock = Lock()
        self._waiting: dict[tuple[str, str, bytes], deque[Exchange]] = {}
        self._known: list[tuple[Exchange, Asked]] = []
        self._anew = mode == "record"
        if mode == "replay" or (mode == "auto" and self._path.exists()):
            self._load()
        self._number = 1 + max((known.number for known, _ in self._known), default=-1)

    def _load(self) -> None:
        for exchange in read_recording(self._path):
            one = exchange.request
            body = None if one.body is None else unpack(one.body)
            what = asked(one.method, one.place, body, self._ignored)
            self._known.append((exchange, what))
            self._waiting.setdefault(what.key, deque()).append(exchange)

    def __repr__(self) -> str:
        return f"ReplayTransport({self._mode}, {len(self._known)} recordings)"

    @property
    def unplayed(self) -> int:
        """The number of recordings not replayed yet."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    async def open(self, request: HttpRequest, timeouts: Timeouts) -> Reply:
        """The recorded reply to a request; or the network's, depending on the mode."""
        place = place_of(request.url, self._secrets)
        what = asked(request.method, place, request.body, self._ignored)
        found = self._next(what)
        if found is not None:
            await asyncio.sleep(0)  # lets other tasks run, as the network would
            return _Played(found.reply)
        if self._mode == "replay":
            raise self._unknown(what)
        return await self._recorded(request, timeouts, place)

    async def close(self) -> None:
        """Close what was opened; a transport that was passed in stays open."""
        if self._inner is not None and self._owns_inner:
            await self._inner.close()

    def _next(self, what: Asked) -> Exchange | None:
        with self._lock:
            waiting = self._waiting.get(what.key)
            return waiting.popleft() if waiting else None

    def _unknown(self, what: Asked) -> NotRecorded:
        times = sum(other.key == what.key for _, other in self._known)
        if times:
            return NotRecorded(f"{self._path.name} has this request only {times} times")
        file = f"{self._path.name} has no such request"
        if not self._known:
            return NotRecorded(f"{file}, and no others; record it with mode='record'")
        found = [(differences(what, other), exchange.number) for exchange, other in self._known]
        paths, number = min(found, key=lambda pair: _distance(pair[0]))
        more = f" and {len(paths) - _MAX_SHOWN} others" if len(paths) > _MAX_SHOWN else ""
        said = f"{', '.join(paths[:_MAX_SHOWN])}{more}"
        msg = f"{file}; the closest is number {number}, which differs at {said}"
        return NotRecorded(msg, paths=paths)

    # --- recording

    async def _recorded(self, request: HttpRequest, timeouts: Timeouts, place: str) -> Reply:
        with self._lock:
            number, self._number = self._number, self._number + 1
            if self._inner is None:
                from dragoman.transport.http import HttpTransport

                self._inner = HttpTransport()
        reply = await self._inner.open(request, timeouts)
        sent = RecordedRequest(
            method=request.method.upper(),
            place=place,
            headers=sent_headers(request.headers, self._secrets),
            body=None if request.body is None else pack(request.body),
        )
        head = RecordedReply(
            status=reply.status, headers=come_headers(reply.headers, self._secrets)
        )
        exchange = Exchange(number=number, request=sent, reply=head)
        return _Listening(reply, exchange, self._write, secrets_in(request.headers, self._secrets))

    def _write(self, exchange: Exchange) -> None:
        with self._lock:
            append_exchange(self._path, exchange, anew=self._anew)
            self._anew = False


def _distance(paths: list[str]) -> int:
    """How different a recording is: another URL counts more than anything in the body."""
    return sum(1 if path.startswith("$") else 1000 for path in paths)


class _Played:
    """A recorded reply."""

    def __init__(self, reply: RecordedReply) -> None:
        self._reply = reply
        self.headers: Mapping[str, str] = _Headers(reply.headers)

    @property
    def status(self) -> int:
        return self._reply.status

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._reply.chunks:
            yield unpack(chunk)
            await asyncio.sleep(0)
        if self._reply.end == "broken":
            msg = "the connection was lost here when this was recorded"
            raise StreamInterrupted(msg)
        if self._reply.end == "left":
            msg = "the recording ends here, because its reader stopped"
            raise StreamInterrupted(msg)

    async def close(self) -> None:
        """Nothing is open."""


class _Listening:
    """A reply that is recorded while it is read."""

    def __init__(
        self,
        reply: Reply,
        exchange: Exchange,
        write: Callable[[Exchange], None],
        secrets: Collection[bytes],
    ) -> None:
        self._secrets = secrets
        self._reply = reply
        self._exchange = exchange
        self._write: Callable[[Exchange], None] | None = write
        self._chunks: list[bytes] = []
        self._end: Literal["complete", "broken", "left"] = "left"

    @property
    def status(self) -> int:
        return self._reply.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._reply.headers

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._reply.chunks():
                self._chunks.append(chunk)
                yield chunk
            self._end = "complete"
        except TransportError:
            self._end = "broken"
            raise
        finally:
            self._done()

    async def close(self) -> None:
        try:
            await self._reply.close()
        finally:
            self._done()

    def _done(self) -> None:
        write, self._write = self._write, None
        if write is None:
            return
        head = self._exchange.reply
        reply = RecordedReply(
            status=head.status,
            headers=head.headers,
            chunks=tuple(map(pack, without_secrets(self._chunks, self._secrets))),
            end=self._end,
        )
        write(Exchange(number=self._exchange.number, request=self._exchange.request, reply=reply))


class _Headers(Mapping[str, str]):
    """Case-insensitive headers of a replayed reply.

    >>> _Headers({"Retry-After": "1"})["retry-after"]
    '1'
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._named = {name.lower(): value for name, value in headers.items()}

    def __getitem__(self, name: str) -> str:
        return self._named[name.lower()]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def __repr__(self) -> str:
        return f"Headers({len(self)} of them)"
