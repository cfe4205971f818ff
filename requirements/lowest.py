"""Prints the lowest versions that pyproject.toml allows, as requirements of `make test-lowest`.

    .venv/bin/python requirements/lowest.py dev local

takes the project's dependencies and those of the extras named. Only these are held to their lowest;
what they need themselves is the newest that pip finds, as for somebody who upgrades all but these.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parent.parent
_LOWER = {">=", "~=", "=="}


def lowest(requirement: Requirement) -> Version | None:
    """The version that its lower bound names; None if it has none."""
    bounds = [
        Version(each.version)
        for each in requirement.specifier
        if each.operator in _LOWER and not each.version.endswith(".*")
    ]
    return max(bounds, default=None)


def requirements(project: Mapping[str, Any], extras: Iterable[str]) -> list[Requirement]:
    """The project's dependencies and those of its extras, with the extras that these name."""
    found = [Requirement(each) for each in project["dependencies"]]
    for extra in extras:
        for text in project["optional-dependencies"][extra]:
            requirement = Requirement(text)
            if requirement.name == project["name"]:
                found += requirements({**project, "dependencies": []}, requirement.extras)
            else:
                found.append(requirement)
    return found


def lines(project: Mapping[str, Any], extras: Iterable[str]) -> list[str]:
    """Each requirement at its lowest: `aiohttp==3.10`. Of two bounds for one package the higher."""
    bounds: dict[str, tuple[Version | None, Requirement]] = {}
    for requirement in requirements(project, extras):
        name, bound = canonicalize_name(requirement.name), lowest(requirement)
        before = bounds.get(name, (None, requirement))[0]
        if name not in bounds or (bound is not None and (before is None or bound > before)):
            bounds[name] = bound, requirement
    return [_line(bound, requirement) for _, (bound, requirement) in sorted(bounds.items())]


def _line(bound: Version | None, requirement: Requirement) -> str:
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    marker = f" ; {requirement.marker}" if requirement.marker else ""
    return f"{requirement.name}{extras}{'' if bound is None else f'=={bound}'}{marker}"


def main(extras: Sequence[str]) -> None:
    """Print them, with what builds dragoman."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, build = read["project"], read["build-system"]["requires"]
    build = [*build, "editables"]  # hatchling wants it for `pip install -e`
    project = {**project, "dependencies": [*project["dependencies"], *build]}
    print("\n".join(lines(project, extras)))


if __name__ == "__main__":
    main(sys.argv[1:])
