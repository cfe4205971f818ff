"""The clipboard: through the terminal (OSC 52), and through a program if one is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import USAGE, Ending

if TYPE_CHECKING:
    from dragoman.cli.chat.screens import Screen

_MAX_BYTES = 74_994  # bytes: terminals accept at most 100,000 characters of base64
_SECONDS = 5.0


def copied(text: str, screen: Screen, *, only_code: bool = False) -> str:
    """Copy a text, or its last code block, and return a message about it."""
    chosen = _last_code(text) if only_code else text
    if chosen is None:
        raise Ending(USAGE, "there is no code block in the last answer")
    content = chosen.encode(errors="replace")
    used = [name for name, command in _programs() if _ran(command, content)]
    if len(content) <= _MAX_BYTES and screen.sends_to_clipboard(b64encode(content).decode()):
        used.append("the terminal")
    if not used:
        raise Ending(USAGE, "no clipboard found: neither a program (wl-copy, xclip,"
                     " xsel, pbcopy) nor a terminal that supports it")  # fmt: skip
    what = "the last code block" if only_code else "the last answer"
    return f"copied {what}, {len(chosen):,} characters (with {' and '.join(used)})"


def _last_code(text: str) -> str | None:
    from dragoman.cli.code_blocks import code_blocks

    found = code_blocks(text)
    return found[-1] if found else None


def _programs() -> Iterator[tuple[str, list[str]]]:
    """The installed programs that write to the clipboard."""
    wanted: list[list[str]] = []
    if os.environ.get("TMUX"):
        wanted.append(["tmux", "load-buffer", "-w", "-"])
    if sys.platform == "darwin":
        wanted.append(["pbcopy"])
    elif os.environ.get("WAYLAND_DISPLAY"):
        wanted.append(["wl-copy"])
    elif os.environ.get("DISPLAY"):
        wanted += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    elif os.environ.get("WSL_DISTRO_NAME") or sys.platform == "win32":
        wanted.append(["clip.exe"])
    for command in wanted:
        if shutil.which(command[0]):
            yield command[0], command


def _ran(command: list[str], content: bytes) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - our own list of programs, and no shell
            command, input=content, check=False, timeout=_SECONDS,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0
