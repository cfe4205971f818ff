"""Reloads the configuration on SIGHUP and whenever its file changes."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from dragoman.errors import DragomanError
from dragoman.gateway.config.reading import DEFAULT_FILE, config_path
from dragoman.gateway.config.settings import GatewayConfig

_INTERVAL = 1.0
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # Windows has none

Stamp = tuple[str, int, int, int, int] | None
"""Identifies a version of a file; None: there is no file."""


class FileWatch:
    """Detects whether the configuration file was changed, created or replaced.

    A missing file doesn't count as a change: some editors remove a file before they replace it.
    """

    def __init__(
        self, path: Path | None, environ: Mapping[str, str], *, default: Path | None = DEFAULT_FILE
    ) -> None:
        """The arguments are those of `load_config`."""
        self._path, self._environ, self._default = path, environ, default
        self._seen = self._stamp()

    def has_changed(self) -> bool:
        """Whether the file changed since the last call, or since this was created."""
        stamp = self._stamp()
        if stamp is None or stamp == self._seen:
            return False
        self._seen = stamp
        return True

    def _stamp(self) -> Stamp:
        try:
            path = config_path(self._path, self._environ, default=self._default)
            found = None if path is None else path.stat()
        except (OSError, ValueError):  # ValueError: a null byte in the path
            return None
        if path is None or found is None:
            return None
        return str(path), found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_size


class Reloader:
    """Reloads a configuration when its file changes and on SIGHUP, as long as it is open.

    ```python
    watch = FileWatch(path, os.environ)
    load = partial(load_config, path, os.environ)
    async with Reloader(watch, load, on_config=gateway.apply, on_problems=log_problems):
        ...
    ```

    An invalid file changes nothing: its problems go to `on_problems`, and the old configuration
    stays in effect.
    """

    def __init__(
        self,
        watch: FileWatch,
        load: Callable[[], GatewayConfig],
        *,
        on_config: Callable[[GatewayConfig], None],
        on_problems: Callable[[DragomanError], None],
        interval: float = _INTERVAL,
        hears_signals: bool = True,
    ) -> None:
        self._watch, self._load = watch, load
        self._on_config, self._on_problems = on_config, on_problems
        self._interval = interval
        self._signal = _HANGUP if hears_signals else None
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._watching(), name="dragoman configuration")
        if self._signal is not None:
            # Outside the main thread there are no signals: only the file is watched.
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().add_signal_handler(self._signal, self._asked.set)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._signal is not None:
            with suppress(NotImplementedError, RuntimeError, ValueError):
                asyncio.get_running_loop().remove_signal_handler(self._signal)
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def check(self) -> None:
        """Reload the file if it has changed."""
        if await asyncio.to_thread(self._watch.has_changed):
            await self.reload()

    async def reload(self) -> None:
        """Reload the file."""
        try:
            self._on_config(await asyncio.to_thread(self._load))
        except DragomanError as error:
            self._on_problems(error)

    async def _watching(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), self._interval)
            if self._asked.is_set():
                self._asked.clear()
                await asyncio.to_thread(self._watch.has_changed)  # not another time for the change
                await self.reload()
            else:
                await self.check()
