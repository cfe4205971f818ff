"""Creates directories that only their owner can read, whatever the umask."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def make_private_folder(folder: Path) -> None:
    """Creates a directory and its missing parents, accessible to the owner only.

    `Path.mkdir` gives its mode to the last one only; the parents would get the umask's.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            each.mkdir(mode=0o700)
    folder.mkdir(exist_ok=True)  # raises if it is not a directory
