"""Attachments in a chat: file names as typed, or dropped into the terminal."""

from __future__ import annotations

import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dragoman.cli.exit_codes import FILES, USAGE, Ending

if TYPE_CHECKING:
    from dragoman.model.content import AnyPart


def named_files(text: str) -> list[Path]:
    r"""The files that a line names.

    If the whole text is an existing name, it is one file, spaces included. Otherwise quotes and
    backslashes are parsed as in a shell, which is how terminals write the names of dropped files.
    """
    if _is_there(text):
        return [typed_path(text)]
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote
        words = []
    if len(words) > 1 and not any(map(_is_there, words)):
        return [typed_path(text)]  # one mistyped name that contains spaces
    return [typed_path(word) for word in words] or [typed_path(text)]


def _is_there(text: str) -> bool:
    try:
        return typed_path(text).exists()
    except (Ending, OSError, ValueError):
        return False


def typed_path(text: str) -> Path:
    """A typed path with `~` expanded; exits if it names an unknown user."""
    name = unquote(text.removeprefix("file://")) if text.startswith("file://") else text
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):
        raise Ending(FILES, f"{text}: there is no such user") from None


def attached_files(paths: list[Path]) -> list[AnyPart]:
    """The files as message parts; if one can't be read, none is attached."""
    from dragoman.cli.attachments import attached

    for path in paths:
        _expect_file(path)
    # An absolute name: `-` alone would mean standard input, where the user types.
    return attached(tuple(str(path.absolute()) for path in paths))


def _expect_file(path: Path) -> None:
    """Exit unless the path is a regular file: a pipe or a device might never end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise Ending(FILES, f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "is not a valid file name"
        raise Ending(FILES, f"{path}: {problem}") from None
    if stat.S_ISDIR(mode):
        raise Ending(USAGE, f"{path}: is a directory; name a file in it")
    if not stat.S_ISREG(mode):
        raise Ending(USAGE, f"{path}: is not a regular file")
