"""Files that go along with a message, named as people type or drop them into a terminal."""

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

    A name that is there as it stands is one file, blanks and all; else quotes and backslashes are
    read as a shell would, which is how terminals write the names of files that are dropped there.
    """
    if _is_there(text):
        return [typed_path(text)]
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed
        words = []
    if len(words) > 1 and not any(map(_is_there, words)):
        return [typed_path(text)]  # one name with blanks, mistyped
    return [typed_path(word) for word in words] or [typed_path(text)]


def _is_there(text: str) -> bool:
    try:
        return typed_path(text).exists()
    except (Ending, OSError, ValueError):
        return False


def typed_path(text: str) -> Path:
    """A path as it is typed; ends the command where it begins with a user who is not there."""
    name = unquote(text.removeprefix("file://")) if text.startswith("file://") else text
    try:
        return Path(name).expanduser()
    except (RuntimeError, ValueError):
        raise Ending(FILES, f"{text}: there is no such user") from None


def attached_files(paths: list[Path]) -> list[AnyPart]:
    """Files as the parts that they are sent as; none of them where one can't be."""
    from dragoman.cli.attachments import attached

    for path in paths:
        _expect_file(path)
    # An absolute name: `-` alone would be standard input, which is where the user types.
    return attached(tuple(str(path.absolute()) for path in paths))


def _expect_file(path: Path) -> None:
    """A pipe or a device would never end, a folder is none."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise Ending(FILES, f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or "that is no name of a file"
        raise Ending(FILES, f"{path}: {problem}") from None
    if stat.S_ISDIR(mode):
        raise Ending(USAGE, f"{path}: is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise Ending(USAGE, f"{path}: is no regular file")
