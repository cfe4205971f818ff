"""The notes of a release: its section of CHANGELOG.md.

    python .ci/release_notes.py 1.2.0

Stops with an error where the changelog has no such section, the section is empty, or the package
has another version: a tag that was set too early publishes nothing.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_SECTION = re.compile(
    r"^## \[(?P<version>[^\]\n]+)\][^\n]*\n(?P<notes>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\((?!\w+:|#)([^)\s]+)\)")
_REFERENCE = re.compile(r"^\[[^\]\n]+\]: .*\n?", re.MULTILINE)
_VERSION = re.compile(r'^__version__ = "([^"]+)"', re.MULTILINE)


def notes_of(version: str, changelog: str) -> str:
    """The section of a version, without its heading; raises `LookupError` where there is none.

    Links into the repository would lead nowhere on a release's page: their text stays.
    """
    sections = {found["version"]: found["notes"] for found in _SECTION.finditer(changelog)}
    notes = _REFERENCE.sub("", sections.get(version, "")).strip()
    if not notes:
        known = ", ".join(sections) or "none"
        msg = f"CHANGELOG.md has no notes for {version}; its sections: {known}"
        raise LookupError(msg)
    return _without_local_links(notes) + "\n"


def expect_version(version: str, source: str) -> None:
    """Raise where the package's `_version.py` says another; *Unreleased* may have any."""
    found = _VERSION.search(source)
    built = found[1] if found else "unknown"
    if version not in (built, "Unreleased"):
        msg = f"the package has version {built}, not {version}"
        raise LookupError(msg)


def _without_local_links(notes: str) -> str:
    return re.sub(rf"\[([^\]]*){_LINK.pattern}", r"\1", notes)


def main(arguments: list[str]) -> int:
    """Print the notes; 1 with a message on standard error where there are none."""
    if len(arguments) != 1:
        print("usage: release_notes.py VERSION", file=sys.stderr)
        return 2
    (version,) = arguments
    try:
        expect_version(version, (ROOT / "src/dragoman/_version.py").read_text(encoding="utf-8"))
        notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    except LookupError as error:
        print(f"release_notes: {error}", file=sys.stderr)
        return 1
    sys.stdout.write(notes)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
