"""The terminal images in the documentation show the current output of the commands."""

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
def test_an_image_is_current(scene: Any) -> None:
    """If the output of a command changed, run `make docs-terminal`."""
    picture = RECORDER["IMAGES"] / f"terminal-{scene.name}.svg"
    kept, now = picture.read_text(encoding="utf-8"), RECORDER["recorded"](scene)
    assert RECORDER["texts"](kept), "the picture is empty"
    assert RECORDER["texts"](kept) == RECORDER["texts"](now), f"{picture.name}: make docs-terminal"


def test_there_are_no_other_images() -> None:
    """A renamed scene leaves no file behind."""
    names = {path.stem for path in RECORDER["IMAGES"].glob("terminal-*.svg")}
    assert names == {f"terminal-{scene.name}" for scene in SCENES}


@pytest.mark.parametrize(
    "picture", sorted(RECORDER["IMAGES"].glob("*.svg")), ids=lambda path: path.name
)
def test_an_image_loads_nothing(picture: Path) -> None:
    """No fonts, images or scripts."""
    text = picture.read_text(encoding="utf-8")
    assert "@font-face" not in text
    assert "url(http" not in text
    assert "href=" not in text
    assert "<script" not in text


def test_a_failing_command_is_noticed() -> None:
    """No image of an error message is committed by mistake."""
    scene = RECORDER["Scene"]("x", "x", ("dragoman nonsense",))
    with pytest.raises(RuntimeError, match="No such command"):
        RECORDER["recorded"](scene)
