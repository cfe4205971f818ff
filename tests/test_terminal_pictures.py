"""The pictures of terminals in the documentation show what the commands print today."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent

if sys.platform == "win32":
    pytest.skip("the recorder needs a POSIX terminal", allow_module_level=True)

RECORDER: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "record_terminal.py"))
SCENES = RECORDER["SCENES"]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_picture_is_current(scene: Any) -> None:
    """After a change of what a command prints: `make docs-terminal`."""
    picture = RECORDER["IMAGES"] / f"terminal-{scene.name}.svg"
    kept, now = picture.read_text(encoding="utf-8"), RECORDER["recorded"](scene)
    assert RECORDER["texts"](kept), "the picture is empty"
    assert RECORDER["texts"](kept) == RECORDER["texts"](now), f"{picture.name}: make docs-terminal"


def test_there_are_no_other_pictures() -> None:
    """A scene that was renamed leaves nothing behind."""
    names = {path.stem for path in RECORDER["IMAGES"].glob("terminal-*.svg")}
    assert names == {f"terminal-{scene.name}" for scene in SCENES}


@pytest.mark.parametrize(
    "picture", sorted(RECORDER["IMAGES"].glob("*.svg")), ids=lambda path: path.name
)
def test_a_picture_loads_nothing(picture: Path) -> None:
    """No fonts, images or scripts from elsewhere, nor of its own."""
    text = picture.read_text(encoding="utf-8")
    assert "@font-face" not in text
    assert "url(http" not in text
    assert "href=" not in text
    assert "<script" not in text


def test_a_command_that_fails_is_noticed() -> None:
    """No picture of an error message is committed by mistake."""
    scene = RECORDER["Scene"]("x", "x", ("dragoman nonsense",))
    with pytest.raises(RuntimeError, match="No such command"):
        RECORDER["recorded"](scene)
