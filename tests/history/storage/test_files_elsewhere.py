"""The file store on systems without POSIX locks, such as Windows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from dragoman import ChatHistory, SessionIdentity
from dragoman.errors import ConfigError
from dragoman.history.storage.files import FileStorage, directory

ONE = SessionIdentity(agent="guide", chat="7", user="Ana")


@pytest.fixture(autouse=True)
def _windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate Windows; setting `os.name` itself would break pathlib."""
    monkeypatch.setattr(directory, "_IS_POSIX", False)


async def _open_by_url(path: Path) -> None:
    await ChatHistory.open(ONE, f"file://{path.as_posix()}")


async def _open_storage(path: Path) -> None:
    await FileStorage(path).open()


@pytest.mark.parametrize("opening", [_open_by_url, _open_storage])
def test_an_error_names_the_store_to_use(
    opening: Callable[[Path], Coroutine[None, None, None]], tmp_path: Path
) -> None:
    """The error says what is missing and which store works, before anything is written."""
    folder = tmp_path / "chats"
    with pytest.raises(ConfigError, match=r"POSIX file locks.*sqlite:///path"):
        asyncio.run(opening(folder))
    assert not folder.exists()
