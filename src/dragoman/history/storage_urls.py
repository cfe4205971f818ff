"""Opens storage backends by URL.

`sqlite:///chats.db` (relative; `sqlite:////var/chats.db` is absolute), `postgresql://…`,
`mariadb://…`, `redis://…`, `file:///var/chats` (a directory), `memory:`. SQLite and files support
`?durability=power`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlencode, urlsplit

from dragoman.errors import ConfigError, InvalidInputError
from dragoman.history.storage.memory import MemoryStorage
from dragoman.history.storage.protocol import Storage

StoragePlace = str | Storage | Sequence[str | Storage] | None
VARIABLE = "DRAGOMAN_HISTORY"


def storage_at(place: StoragePlace, *, blocking: bool = False) -> tuple[Storage, bool]:
    """Returns the backend for a URL, not opened yet, and whether it was created here."""
    if place is None:
        place = os.environ.get(VARIABLE) or f"sqlite:///{default_file()}"
    if isinstance(place, str):
        return _from_url(place, blocking=blocking), True
    if not isinstance(place, Sequence):
        if not (hasattr(place, "append") and hasattr(place, "session")):
            msg = f"storage must be a URL, a backend, or a list of them, not {type(place).__name__}"
            raise InvalidInputError(msg)
        return place, False
    if isinstance(place, (bytes, bytearray, memoryview)):
        msg = "the URL of a store must be a str, not bytes"
        raise InvalidInputError(msg)
    if not place:
        msg = "a chain of stores needs at least one store"
        raise InvalidInputError(msg)
    members = [storage_at(each, blocking=blocking) for each in place]
    if len(members) == 1:
        return members[0]
    from dragoman.history.storage.chain import ChainStorage

    # A chain created here is closed here, with those of its members that were created here.
    owned = [member for member, made in members if made]
    return ChainStorage(*(member for member, _ in members), owned=owned), True


@asynccontextmanager
async def open_storage(place: StoragePlace = None) -> AsyncGenerator[Storage]:
    """The store at a URL, opened, for histories to share; closed at the end of the block.

    ```python
    async with open_storage("sqlite:///chats.db") as storage:
        history = await ChatHistory.open(session, storage)
    ```

    It takes what `ChatHistory` takes as `storage`. A backend that is handed in stays open.
    """
    storage, is_made_here = storage_at(place)
    try:
        await storage.open()
        yield storage
    finally:
        if is_made_here:
            await storage.close()


def default_file() -> Path:
    """The default file, in the user's data directory."""
    home = Path.home()
    if sys.platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif os.name == "nt":
        folder = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    return folder / "dragoman" / "histories.db"


def _from_url(url: str, *, blocking: bool) -> Storage:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = SplitResult("", "", "", "", "")
    make = _MAKERS.get(parts.scheme)
    if make is None:
        known = ", ".join(sorted(_MAKERS))
        msg = f"the URL of a store must start with one of {known}, such as sqlite:///chats.db"
        raise ConfigError(msg)
    return make(url, parts, blocking)


def _memory(_url: str, _parts: SplitResult, _blocking: bool) -> Storage:  # noqa: FBT001 - in _MAKERS
    return MemoryStorage()


def _sqlite(_url: str, parts: SplitResult, blocking: bool) -> Storage:  # noqa: FBT001 - as above
    from dragoman.history.storage.sqlite import SQLiteStorage

    path = unquote(parts.path).removeprefix("/")
    if not path or parts.netloc:
        msg = "the URL of a SQLite store must be sqlite:///file or sqlite:////absolute/file"
        raise ConfigError(msg)
    return SQLiteStorage(path, blocking=blocking, **_options(parts, "durability"))  # type: ignore[arg-type]  # checked there


def _files(_url: str, parts: SplitResult, blocking: bool) -> Storage:  # noqa: FBT001 - as above
    from dragoman.history.storage.files import FileStorage

    path = unquote(parts.path)
    if not path or parts.netloc not in {"", "localhost"}:
        msg = "the URL of a file store must be file:///directory"
        raise ConfigError(msg)
    return FileStorage(path, blocking=blocking, **_options(parts, "durability"))  # type: ignore[arg-type]  # checked there


def _postgres(url: str, _parts: SplitResult, _blocking: bool) -> Storage:  # noqa: FBT001 - as above
    from dragoman.history.storage.postgres import PostgresStorage

    return PostgresStorage(url)


def _mariadb(url: str, _parts: SplitResult, _blocking: bool) -> Storage:  # noqa: FBT001 - as above
    from dragoman.history.storage.mariadb import MariaDBStorage

    return MariaDBStorage(url)


def _redis(_url: str, parts: SplitResult, _blocking: bool) -> Storage:  # noqa: FBT001 - as above
    from dragoman.history.storage.redis import RedisStorage

    given = parse_qsl(parts.query, keep_blank_values=True)
    theirs = urlencode([pair for pair in given if pair[0] != "prefix"])
    prefix = dict(given).get("prefix", "dragoman")
    return RedisStorage(parts._replace(query=theirs).geturl(), prefix=prefix)


def _options(parts: SplitResult, *known: str) -> dict[str, str]:
    given = parse_qs(parts.query)
    if set(given) - set(known):
        msg = f"a {parts.scheme} store supports only these options: {', '.join(known)}"
        raise ConfigError(msg)
    return {name: values[-1] for name, values in given.items()}


_MAKERS: dict[str, Callable[[str, SplitResult, bool], Storage]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "file": _files,
    "postgres": _postgres,
    "postgresql": _postgres,
    "mariadb": _mariadb,
    "mysql": _mariadb,
    "redis": _redis,
    "rediss": _redis,
}
