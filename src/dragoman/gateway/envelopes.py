"""The keys with which a gateway signs provider state that travels through its clients.

All workers and machines that share a key store share them: they are in the store, under ids that no
client's key can have. Without a key store, they are in a file of the data directory. A configured
file takes the place of both.
"""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING

from dragoman.errors import ConfigError, DragomanError, InvalidInputError
from dragoman.history.storage.places import make_private_folder
from dragoman.history.storage_urls import default_file
from dragoman.transport.atomic_files import AtomicFile
from dragoman.wire.envelope import expect_key, signed_with

if TYPE_CHECKING:
    from dragoman.gateway.config.settings import ServerSettings
    from dragoman.gateway.keys import Keys

_LOG = logging.getLogger("dragoman.gateway")
_FILE = "envelopes.key"
_MAX_BYTES = 64 * 1024
_KEY_BYTES = 32
REFRESH = 60.0
"""Seconds after which workers look for keys that others have added."""


class EnvelopeKeys:
    """The keys of one worker: the first one signs, all of them are accepted."""

    def __init__(self) -> None:
        self._keys: tuple[bytes, ...] = ()

    def signing(self) -> AbstractContextManager[None]:
        """Sign and check envelopes in this context; does nothing before keys were read."""
        return signed_with(*self._keys, passes_foreign=True) if self._keys else nullcontext()

    async def read(self, server: ServerSettings, keys: Keys | None) -> None:
        """Read the keys, and create one where there is none."""
        if server.envelope_keys is not None:
            self._keys = keys_in(Path(server.envelope_keys))
        elif keys is not None:
            self._keys = await keys.envelope_keys()
        else:
            self._keys = _own(default_file().with_name(_FILE))

    async def refresh(self, server: ServerSettings, keys: Keys | None) -> None:
        """Read the keys again; if that fails, those that were read remain."""
        try:
            await self.read(server, keys)
        except (DragomanError, OSError) as error:
            _LOG.warning("the envelope keys were not read again: %s", error)


def keys_in(path: Path) -> tuple[bytes, ...]:
    """The keys in a file, one per line, the latest first; raises if it can't be used."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
    except OSError as error:
        msg = f"the file of envelope keys can't be read: {os.strerror(error.errno or 0)}"
        raise ConfigError(msg) from None
    found = tuple([line.strip() for line in content.split(b"\n") if line.strip()])
    with suppress(InvalidInputError):
        for each in found:
            expect_key(each)
        if found:
            return found
    msg = "the file of envelope keys must have keys of 16 to 64 bytes, one per line"
    raise ConfigError(msg)


def _own(path: Path) -> tuple[bytes, ...]:
    """The keys in this gateway's own file, which is made at the first start."""
    try:
        if not path.exists():
            _make(path)
        return keys_in(path)
    except (OSError, DragomanError) as error:
        _LOG.warning(
            "envelopes are signed with a key that is lost at the next restart (%s); set"
            " `envelope_keys` in [server]", error,
        )  # fmt: skip
        return (token_bytes(_KEY_BYTES),)


def _make(path: Path) -> None:
    """Create the file with a new key; of several workers that do so at once, one wins."""
    make_private_folder(path.parent)
    with (
        suppress(FileExistsError),
        AtomicFile(path, is_private=True, is_new=True) as file,
    ):
        file.write(token_bytes(_KEY_BYTES).hex().encode() + b"\n")
        file.keep(is_synced=True)
