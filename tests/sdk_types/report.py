"""How many of the bodies that the vendors' types allow come back as they came.

`python -m tests.sdk_types.report` prints it for the SDKs that are installed: `make sdk-report`
installs the newest ones first. It exits with 1 where anything is changed or silent.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import dragoman
from tests.sdk_types.bodies import SOURCES, Source, versions
from tests.sdk_types.checks import change, silent

_SHOWN = 5


@dataclass
class Figures:
    """What became of the bodies of one source."""

    source: Source
    variants: int = 0
    equal: int = 0
    translations: int = 0
    accounted: int = 0
    problems: list[str] = field(default_factory=list)


def figures(step: int = 1) -> Iterator[Figures]:
    """The figures of every source whose SDK is installed; of every so many of its bodies."""
    for source in SOURCES:
        if source.is_installed:
            yield _figures_of(source, step)


def _figures_of(source: Source, step: int) -> Figures:
    found = Figures(source)
    others = [name for name in dragoman.dialects() if name != source.dialect]
    for body in source.bodies(step):
        found.variants += 1
        problem = change(body, body.wire) or change(body, body.bare)
        found.equal += problem is None
        if problem is not None:
            found.problems.append(f"{body}: {problem}")
        for target in others:
            missing = silent(body, target)
            found.translations += 1
            found.accounted += not missing
            if missing:
                found.problems.append(f"{body} to {target}: {missing[0]}")
    return found


def main() -> int:
    """Print the figures."""
    print("bodies that the types of the SDKs allow, each read and written again, and translated")
    print("  " + ", ".join(f"{name} {number}" for name, number in versions().items()))
    is_good = True
    for found in figures():
        name = f"{found.source.name} {found.source.kind}s"
        print(
            f"  {name:28} {found.equal:5} of {found.variants:5} equal; translations accounted for: "
            f"{found.accounted:6} of {found.translations:6}"
        )
        for problem in found.problems[:_SHOWN]:
            print(f"    {problem}")
        is_good = is_good and not found.problems
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
