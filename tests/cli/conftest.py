"""Fixtures of the CLI tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store and a folder of the test's own, also for what is stored beside histories."""
    monkeypatch.setenv("DRAGOMAN_HISTORY", f"sqlite:///{tmp_path / 'chats.db'}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
