"""The access log: one line per request, as JSON or text, without content and keys.

A separate thread writes the lines, so that a slow reader or disk does not block requests. If too
many lines are queued, new ones are dropped and counted.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from json import dumps
from time import sleep, time
from typing import Any

import msgspec

from dragoman.gateway.config.settings import LogForm
from dragoman.gateway.records import RequestRecord

_UNSAFE = re.compile(r"[^!-~]")  # includes spaces, which separate the fields of a text line
_MAX_NAME_LENGTH = 128  # characters of a name
_MAX_REPORTS = 20
_PROBES = frozenset({"health", "ready", "root", "metrics"})  # sent every few seconds by monitoring
_MAX_QUEUED = 20_000
_NUMBER = re.compile(r"\[\d+\]")
_encode = msgspec.json.Encoder().encode
_JOIN = 5.0
_PAUSE = 0.05
_NAMES = ("route", "provider", "model", "key", "error", "request_id")
Entry = tuple[float, RequestRecord]


class AccessLog:
    """Writes request records to a file descriptor."""

    def __init__(self, form: LogForm, *, fd: int = 1, worker: int = 0) -> None:
        self._line: Callable[[float, RequestRecord, int], bytes] = (
            json_line if form == "json" else text_line
        )
        self._fd = fd
        self._worker = worker
        self._waiting: deque[Entry] = deque()
        self._wanted = threading.Event()
        self._is_over = False
        self.dropped = 0
        """Number of lines dropped because the queue was full."""
        self._thread = threading.Thread(target=self._run, name="access-log", daemon=True)
        self._thread.start()

    def __call__(self, record: RequestRecord) -> None:
        """Queue the log line of a completed request."""
        if record.kind in _PROBES and record.error is None:
            return
        if len(self._waiting) >= _MAX_QUEUED:
            self.dropped += 1
            return
        self._waiting.append((time(), record))
        if not self._wanted.is_set():
            self._wanted.set()

    def close(self) -> None:
        """Write the queued lines; gives up after a few seconds."""
        self._is_over = True
        self._wanted.set()
        self._thread.join(_JOIN)

    # --- in the thread

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            if not self._is_over:
                sleep(_PAUSE)  # write in batches: waking up costs more than a line
            if not self._waiting:
                self._wanted.clear()  # while there are lines, requests need not wake this thread
            is_over = self._is_over
            while self._waiting:
                if not self._write(b"".join(self._batch())):
                    return
            if is_over:
                return

    def _batch(self) -> list[bytes]:
        count = min(len(self._waiting), 256)
        entries = [self._waiting.popleft() for _ in range(count)]
        return [self._line(when, record, self._worker) for when, record in entries]

    def _write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:  # a terminal that another program made non-blocking
                sleep(_PAUSE)
            except OSError:  # the reader is gone
                self._is_over = True
                return False
        return True


def json_line(when: float, record: RequestRecord, worker: int = 0) -> bytes:
    """Format a record as a line of JSON, without the fields that are unknown."""
    seconds = f'"seconds":{record.seconds:.6f}'
    if record.first_byte is not None:
        seconds = f'{seconds},"first_byte":{record.first_byte:.6f}'
    numbers = _numbers(record)
    if record.provider_error is not None:
        numbers["provider_error"] = msgspec.Raw(_quoted(record.provider_error))
    failed = [each for each in record.tried if each[3] is not None]
    if failed and record.attempts > 1:
        numbers["failed"] = [
            {"provider": clean(place), "model": clean(model or ""), "error": clean(error or "")}
            for place, model, _, error in failed[:_MAX_REPORTS]
        ]
    if record.losses:
        numbers["losses"] = _reports(record.losses)
    if record.repairs:
        numbers["repairs"] = _reports(record.repairs)
    if worker:
        numbers["worker"] = worker
    named = _named(
        _level(record), record.kind, record.front, record.status, _short(record.route),
        _short(record.provider_name), _short(record.model), _short(record.key),
        _short(record.error), _short(record.request_id),
    )  # fmt: skip
    more = b"," + _encode(numbers)[1:] if numbers else b"}"
    return b'{"time":"%b",%b,%b%b\n' % (moment(when).encode(), named, seconds.encode(), more)


def _short(name: str | None) -> str | None:
    """A name that may be cached: clients choose some of them, of any length."""
    return name if name is None or len(name) <= _MAX_NAME_LENGTH else name[:_MAX_NAME_LENGTH]


@lru_cache(512)
def _named(level: str, kind: str, front: str, status: int, *names: str | None) -> bytes:
    """The fields that many lines share."""
    fields: dict[str, Any] = {
        "level": level, "event": "request", "kind": kind, "front": front, "status": status,
    }  # fmt: skip
    for name, value in zip(_NAMES, names, strict=True):
        if value is not None:
            fields[name] = clean(value)
    return _encode(fields)[1:-1]


def text_line(when: float, record: RequestRecord, worker: int = 0) -> bytes:
    """Format a record as text: time, status, duration, kind, dialect, upstream, then pairs."""
    parts = [
        moment(when),
        str(record.status),
        _duration(record.seconds),
        record.kind,
        record.front,
    ]
    provider = record.provider_name
    if provider is not None:
        model = "" if record.model is None else f" {clean(record.model)}"
        parts.append(f"-> {clean(provider)}{model}")
    if record.route is not None:
        parts.append(f"route={clean(record.route)}")
    if record.key is not None:
        parts.append(f"key={clean(record.key)}")
    for name, value in _numbers(record).items():
        parts.append(name if value is True else f"{name}={value}")
    parts += _failures(record)
    for name, reports in (("losses", record.losses), ("repairs", record.repairs)):
        if reports:
            parts.append(f"{name}={','.join(_reports(reports))}")
    if worker:
        parts.append(f"worker={worker}")
    return " ".join(parts).encode() + b"\n"


def _failures(record: RequestRecord) -> Iterator[str]:
    """The error, and those of earlier attempts."""
    if record.error is not None:
        yield f"error={clean(record.error)}"
    if record.provider_error is not None:
        yield f"provider_error={_quoted(record.provider_error).decode()}"
    failed = [f"{place}:{error}" for place, _, _, error in record.tried if error is not None]
    if failed and record.attempts > 1:
        yield f"failed={','.join(map(clean, failed[:_MAX_REPORTS]))}"


def clean(name: str) -> str:
    r"""Make an untrusted name a single printable word of limited length.

    >>> clean("gpt-5\n200 forged")
    'gpt-5?200?forged'
    """
    return _cleaned(name[:_MAX_NAME_LENGTH])


def _quoted(text: str) -> bytes:
    """A text of others as a JSON string in ASCII: no terminal acts on it."""
    return dumps(text).encode()


@lru_cache(2048)
def _cleaned(name: str) -> str:
    return _UNSAFE.sub("?", name)


def _numbers(record: RequestRecord) -> dict[str, Any]:
    found: dict[str, Any] = {}
    usage = record.usage
    if usage is not None:
        found["tokens_in"], found["tokens_out"] = usage.total_input, usage.total_output
        if usage.cache_read:
            found["tokens_cached"] = usage.cache_read
        if usage.thinking:
            found["tokens_reasoning"] = usage.thinking
    if record.cost is not None:
        found["cost"] = float(record.cost)
    if record.attempts > 1:
        found["attempts"] = record.attempts
    if record.sent:
        found["sent"] = record.sent
    _add_flags(record, found)
    return found


def _add_flags(record: RequestRecord, found: dict[str, Any]) -> None:
    if record.stream:
        found["stream"] = True
    if record.passes:
        found["passed"] = True
    if record.cached:
        found["cached"] = True
    if record.left:
        found["left"] = True


def _reports(paths: tuple[str, ...]) -> list[str]:
    """Deduplicated paths or rules, without message indexes."""
    kinds = dict.fromkeys(clean(_NUMBER.sub("[]", path)) for path in paths)
    return list(kinds)[:_MAX_REPORTS]


def moment(when: float) -> str:
    """A time as the log writes it: in UTC, to the millisecond."""
    seconds = int(when)
    return f"{_second(seconds)}.{int((when - seconds) * 1000):03d}+00:00"


@lru_cache(4)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _level(record: RequestRecord) -> str:
    if record.status >= 500 and not record.left:  # noqa: PLR2004 - the servers' errors
        return "error"
    return "warning" if record.error is not None else "info"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.1f}ms" if seconds < 1 else f"{seconds:.2f}s"
