"""A configuration that follows its file."""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from dragoman.errors import ConfigError, DragomanError
from dragoman.gateway.config.reading import load_config
from dragoman.gateway.config.reloading import FileWatch, Reloader
from dragoman.gateway.config.settings import GatewayConfig


class Told:
    """The reports."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.problems: list[str] = []
        self.news = asyncio.Event()

    def config(self, config: GatewayConfig) -> None:
        """A new configuration."""
        self.ports.append(config.server.port)
        self.news.set()

    def trouble(self, error: DragomanError) -> None:
        """Problems of a file."""
        self.problems.append(str(error))
        self.news.set()


def write(path: Path, port: int | str) -> None:
    """Replace the file atomically."""
    new = path.with_suffix(".new")
    new.write_text(f"[server]\nport = {port}\n")
    new.replace(path)


def reloader(path: Path, told: Told, interval: float = 3600.0) -> Reloader:
    """A reloader that reports to `told`."""
    return Reloader(
        FileWatch(path, {}),
        partial(load_config, path, {}),
        on_config=told.config,
        on_problems=told.trouble,
        interval=interval,
    )


async def test_a_changed_file_is_loaded_once(tmp_path: Path) -> None:
    """An unchanged one never."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    watching = reloader(path, told)
    await watching.check()
    assert told.ports == []
    write(path, 2)
    await watching.check()
    await watching.check()
    assert told.ports == [2]


async def test_an_invalid_file_keeps_the_old_configuration(tmp_path: Path) -> None:
    """Its problems are reported once; when it is corrected, it is loaded."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    watching = reloader(path, told)
    write(path, "'x'")
    await watching.check()
    await watching.check()
    assert told.ports == []
    assert told.problems == [f"{path}:2:8: this must be a whole number from 0 to 65535"]
    write(path, 3)
    await watching.check()
    assert told.ports == [3]


async def test_a_file_that_vanishes_changes_nothing(tmp_path: Path) -> None:
    """Until it is back; if named explicitly, its absence is a problem."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    watching = reloader(path, told)
    path.unlink()
    await watching.check()
    assert (told.ports, told.problems) == ([], [])
    await watching.reload()
    assert told.problems == [f"{path}: there is no such file"]
    write(path, 2)
    await watching.check()
    assert told.ports == [2]


def test_a_file_that_appears_is_a_change(tmp_path: Path) -> None:
    """The default file may be created later."""
    path = tmp_path / "dragoman.toml"
    watch = FileWatch(None, {}, default=path)
    assert not watch.has_changed()
    write(path, 5)
    assert [watch.has_changed(), watch.has_changed()] == [True, False]
    assert not FileWatch(Path("a\0b"), {}).has_changed()


async def test_a_rejected_configuration_is_a_problem(tmp_path: Path) -> None:
    """If the callback rejects it, the file is still watched."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)

    def refuse(_config: GatewayConfig) -> None:
        msg = "no"
        raise ConfigError(msg)

    load = partial(load_config, path, {})
    await Reloader(FileWatch(path, {}), load, on_config=refuse, on_problems=told.trouble).reload()
    assert told.problems == ["no"]


async def test_the_file_is_watched(tmp_path: Path) -> None:
    """Without a request."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    async with reloader(path, told, interval=0.01):
        write(path, 2)
        await told.news.wait()
    assert told.ports == [2]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP on Windows")
async def test_sighup_reloads(tmp_path: Path) -> None:
    """Even an unchanged file; afterwards the signal handler is restored."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    before = signal.getsignal(signal.SIGHUP)
    async with reloader(path, told):
        os.kill(os.getpid(), signal.SIGHUP)
        await told.news.wait()
    assert told.ports == [1]
    assert signal.getsignal(signal.SIGHUP) == before


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="there is no SIGHUP on Windows")
async def test_a_change_and_its_signal_are_one_reload(tmp_path: Path) -> None:
    """An operator who changes the file and sends the signal sees one message, not two."""
    path, told = tmp_path / "dragoman.toml", Told()
    write(path, 1)
    async with reloader(path, told, interval=0.2):
        write(path, 2)
        os.kill(os.getpid(), signal.SIGHUP)
        await told.news.wait()
        await asyncio.sleep(0.5)
    assert told.ports == [2]
