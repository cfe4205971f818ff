"""The input history of chats, its folder and templates are private."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from dragoman.agent.prompt_templates import write_template
from dragoman.cli.chat.kept_lines import KeptLines

pytestmark = pytest.mark.skipif(os.name == "nt", reason="there are no such rights")


def _modes(place: Path) -> set[int]:
    return {stat.S_IMODE(each.stat().st_mode) for each in place.rglob("*")}


def test_inputs_are_private_with_their_folders(tmp_path: Path) -> None:
    """A chat may create the folder that conversations are stored in later."""
    before = os.umask(0)
    try:
        kept = KeptLines(tmp_path / "share" / "dragoman" / "inputs")
        kept.add("a secret\nof two lines")
    finally:
        os.umask(before)
    assert kept.load() == ["a secret\nof two lines"]
    assert _modes(tmp_path) == {0o700, 0o600}


def test_templates_are_private_with_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts may be private as well."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    before = os.umask(0)
    try:
        write_template("mine", 'prompt = "Hi"\n')
    finally:
        os.umask(before)
    assert _modes(tmp_path) == {0o700, 0o600}
