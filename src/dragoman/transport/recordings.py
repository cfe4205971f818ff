"""The file format of recorded traffic: one JSON line per exchange.

The first line is `{"dragoman_recording": 1}`: the version of the format. Every other line is

```json
{"number": 0,
 "request": {"method": "POST", "place": "/v1/chat/completions", "headers": {…}, "body": "…"},
 "reply": {"status": 200, "headers": {…}, "chunks": ["data: …", "data: …"], "end": "complete"}}
```

`number` is the order in which the requests were sent; lines are in the order in which the replies
ended. `place` is the URL without host and secrets. Bodies and chunks are unchanged, with a chunk
for each piece received from the network; data that is not UTF-8 is `{"base64": "…"}`. `end` is
`complete`, `broken` if the connection was lost, or `left` if the reader stopped early.
"""

from __future__ import annotations

import binascii
import os
import re
from base64 import b64decode, b64encode
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.jsontext import dumps, loads_as
from dragoman.transport.atomic_files import write_atomically

SCRUBBED = "***"
_MIN_KEY_LENGTH = 8  # minimum length of a key to look for in replies

# The only request headers that are recorded: others come from the user, and may be keys.
_RECORDED_HEADERS = frozenset({
    "accept", "anthropic-beta", "anthropic-version", "content-type", "openai-beta", "user-agent",
    "x-goog-upload-command", "x-goog-upload-header-content-length",
    "x-goog-upload-header-content-type", "x-goog-upload-offset", "x-goog-upload-protocol",
})  # fmt: skip
# Reply headers that are not recorded.
_ACCOUNT_HEADERS = frozenset({
    "anthropic-organization-id", "cookie", "openai-organization", "openai-project", "set-cookie",
})  # fmt: skip
# Nor those about the connection: the body is recorded decompressed and whole.
_CONNECTION = frozenset({
    "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding",
})  # fmt: skip
_SECRET = re.compile(
    r"(?:^|[-_.])(?:(?:api)?-?key|token|secret|auth(?:orization)?|password|passwd|credential"
    r"|signature|sig|cookie)$",
    re.IGNORECASE,
)


def is_secret(name: str, more: Collection[str] = ()) -> bool:
    """Whether a header or query parameter of that name is secret.

    >>> is_secret("X-Api-Key"), is_secret("access_token"), is_secret("x-ratelimit-limit-tokens")
    (True, True, False)
    """
    return name.lower() in more or _SECRET.search(name) is not None


def sent_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a request, with most values hidden."""
    return {
        name.lower(): value
        if name.lower() in _RECORDED_HEADERS and not is_secret(name, more)
        else SCRUBBED
        for name, value in headers.items()
    }  # fmt: skip


def secrets_in(headers: Mapping[str, str], more: Collection[str] = ()) -> list[bytes]:
    """The keys in the headers of a request, with and without their scheme prefix."""
    values = [value for name, value in headers.items() if is_secret(name, more)]
    found = {word for value in values for word in (value, value.rpartition(" ")[2])}
    return sorted((w.encode() for w in found if len(w) >= _MIN_KEY_LENGTH), key=len, reverse=True)


def without_secrets(chunks: list[bytes], secrets: Collection[bytes]) -> list[bytes]:
    """The chunks of a reply; joined into one if a key had to be removed from them."""
    whole = b"".join(chunks)
    found = [secret for secret in secrets if secret in whole]
    for secret in found:
        whole = whole.replace(secret, SCRUBBED.encode())
    return [whole] if found else chunks


def come_headers(headers: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The headers of a reply, without secrets."""
    named = {name.lower(): value for name, value in headers.items()}
    return {
        name: SCRUBBED if name in _ACCOUNT_HEADERS or is_secret(name, more) else value
        for name, value in named.items()
        if name not in _CONNECTION
    }


def place_of(url: str, more: Collection[str] = ()) -> str:
    """A URL without host and secrets, with its query sorted.

    >>> place_of("https://me:pw@a.example/v1/models?key=1&alt=sse")
    '/v1/models?alt=sse&key=***'
    """
    parts = urlsplit(url)
    query = sorted(
        (name, SCRUBBED if is_secret(name, more) else value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
    )
    return f"{parts.path}?{urlencode(query, safe='*')}" if query else parts.path


VERSION = 1


class Base64(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not UTF-8 text."""

    base64: str


Bytes = str | Base64


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded request."""

    method: str
    place: str
    headers: Mapping[str, str] = EMPTY
    body: Bytes | None = None


class RecordedReply(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded reply."""

    status: int
    headers: Mapping[str, str] = EMPTY
    chunks: tuple[Bytes, ...] = ()
    end: Literal["complete", "broken", "left"] = "complete"


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A request and its reply."""

    number: int = 0
    request: RecordedRequest
    reply: RecordedReply

    def __repr__(self) -> str:
        return f"Exchange({self.number}, {self.reply.status}, {len(self.reply.chunks)} chunks)"


class _Head(msgspec.Struct, frozen=True):
    dragoman_recording: int


_HEAD = msgspec.json.Decoder(_Head)
_LINE = msgspec.json.Decoder(Exchange)


def pack(raw: bytes) -> Bytes:
    """Bytes in their recorded form."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Base64(b64encode(raw).decode("ascii"))


def unpack(packed: Bytes) -> bytes:
    """The original bytes."""
    if isinstance(packed, str):
        return packed.encode("utf-8", "surrogatepass")
    try:
        return b64decode(packed.base64, validate=True)
    except (binascii.Error, ValueError):
        problem = "a recording contains invalid base64"
    raise ConfigError(problem)


# --- reading


def read_recording(path: Path) -> list[Exchange]:
    """The exchanges in a file, in the order in which they were started."""
    lines = _lines(path)
    if lines:
        _check_version(lines[0], path)
    found = [_exchange(line, number, path) for number, line in enumerate(lines[1:], 2) if line]
    return sorted(found, key=lambda exchange: exchange.number)


def _lines(path: Path) -> list[bytes]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        problem = error.strerror or "file system error"
    except ValueError:
        problem = "invalid file name"
    else:
        return raw.split(b"\n")[:-1]  # the process died while writing an incomplete last line
    msg = f"the recording can't be read: {problem}"
    raise ConfigError(msg)


def _check_version(line: bytes, path: Path) -> None:
    try:
        version = loads_as(line, _HEAD).dragoman_recording
    except InvalidInputError:
        version = None
    if version == VERSION:
        return
    what = "is not a recording" if version is None else f"has version {version}, not {VERSION}"
    msg = f"{path.name} {what}"
    raise ConfigError(msg)


def _exchange(line: bytes, number: int, path: Path) -> Exchange:
    try:
        return loads_as(line, _LINE)
    except InvalidInputError as error:
        problem = str(error)
    msg = f"line {number} of the recording {path.name} is not an exchange: {problem}"
    raise ConfigError(msg)


# --- writing


def append_exchange(path: Path, exchange: Exchange, *, anew: bool = False) -> None:
    """Append an exchange, or replace all of them; completely or not at all."""
    line = dumps(exchange) + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if anew:
            write_atomically(path, _head() + line)
        else:
            _append(path, line)
    except OSError as error:
        problem = error.strerror or "disk error"
    else:
        return
    msg = f"the recording {path.name} can't be written: {problem}"
    raise ConfigError(msg)


def _head() -> bytes:
    return dumps({"dragoman_recording": VERSION}) + b"\n"


def _append(path: Path, line: bytes) -> None:
    with path.open("a+b", buffering=0) as file, _alone(file.fileno()):
        kept = _whole_lines(path)
        file.truncate(kept)
        content = memoryview(line if kept else _head() + line)
        try:
            while content:
                content = content[file.write(content) :]
        except BaseException:
            file.truncate(kept)  # the disk is full: remove the partial line
            raise


def _whole_lines(path: Path) -> int:
    """The bytes of a file's complete lines: a process may have died while writing."""
    with path.open("rb") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - 65536)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return min(start + found + 1, size)
            end = start
    return 0


@contextmanager
def _alone(handle: int) -> Generator[None]:
    """Hold an exclusive lock among processes, where the system supports it."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
