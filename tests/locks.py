"""What the locks in requirements/ say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker
from packaging.utils import NormalizedName, canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "requirements"
_ENTRY = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>\S+)(?: ; (?P<marker>.*?))?(?: \\)?$"
)


class Entry(NamedTuple):
    """A package of a lock."""

    name: NormalizedName
    version: Version
    marker: Marker | None
    hashes: frozenset[str]


def entries(lock: str) -> list[Entry]:
    """The packages of a lock, those of the locks that it includes first."""
    found: list[Entry] = []
    for block in re.split(r"\n(?!\s)", (FOLDER / f"{lock}.txt").read_text(encoding="utf-8")):
        first, *others = block.splitlines() or [""]
        if first.startswith("-r "):
            found += entries(first.removeprefix("-r ").removesuffix(".txt"))
        elif first and not first.startswith("#"):
            read = _ENTRY.match(first)
            assert read is not None, first
            marker = None if read["marker"] is None else Marker(read["marker"])
            hashes = frozenset(each.strip().removesuffix(" \\") for each in others)
            name = canonicalize_name(read["name"])
            found.append(Entry(name, Version(read["version"]), marker, hashes))
    return found


def versions(lock: str) -> dict[str, str]:
    """The version of each package that is installed here from a lock."""
    here = [each for each in entries(lock) if each.marker is None or each.marker.evaluate()]
    return {each.name: str(each.version) for each in here}
