"""Reports how many of the bodies that the SDKs' types allow survive a round trip unchanged.

`python -m tests.sdk_types.report` prints the figures for the installed SDKs; `make sdk-report`
installs the newest ones first. The exit code is 1 if anything was changed or silently lost, or if a
field is carried as it is and `docs/contributing/carried-as-is.md` doesn't list it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import dragoman
from tests.sdk_types.bodies import SOURCES, Source, versions
from tests.sdk_types.carried import PAGE, carried, rows, unexplained
from tests.sdk_types.checks import change, silent, stream_problems
from tests.sdk_types.streams import STREAMS, StreamSource

_SHOWN = 5


@dataclass
class Figures:
    """The outcomes of the variants of one type."""

    name: str
    variants: int = 0
    equal: int = 0
    translations: int = 0
    accounted: int = 0
    """Of the translations, those that say or report everything."""
    problems: list[str] = field(default_factory=list)

    def count(self, what: object, problem: str | None) -> None:
        """Record the outcome of a variant in its own dialect."""
        self.variants += 1
        self.equal += problem is None
        if problem is not None:
            self.problems.append(f"{what}: {problem}")

    def count_translation(self, what: object, target: str, problems: list[str]) -> None:
        """Record the outcome of a variant in another dialect."""
        self.translations += 1
        self.accounted += not problems
        if problems:
            self.problems.append(f"{what} to {target}: {problems[0]}")


def figures(step: int = 1) -> Iterator[Figures]:
    """The figures of all types whose SDK is installed; with `step`, of every `step`-th variant."""
    for source in SOURCES:
        if source.is_installed:
            yield _found(f"{source.name} {source.kind}s", partial(_of_bodies, source, step))
    for streams in STREAMS:
        if streams.source.is_installed:
            yield _found(f"{streams.source.name} streams", partial(_of_streams, streams, step))


def _found(name: str, count: Callable[[], Figures]) -> Figures:
    """The figures; if an SDK moved its types, that is reported as its problem."""
    try:
        return count()
    except (ImportError, AttributeError) as error:
        return Figures(name, problems=[f"its types are not where they were: {error}"])


def _of_bodies(source: Source, step: int) -> Figures:
    found = Figures(f"{source.name} {source.kind}s")
    for body in source.bodies(step):
        found.count(body, change(body, body.wire) or change(body, body.bare))
        for target in dragoman.dialects():
            if target != source.dialect:
                found.count_translation(body, target, silent(body, target))
    return found


def _of_streams(streams: StreamSource, step: int) -> Figures:
    found = Figures(f"{streams.source.name} streams")
    for stream in streams.streams(step):
        for target in dragoman.dialects():
            problems = stream_problems(stream, streams, target)
            if target == streams.source.dialect:
                found.count(stream, problems[0] if problems else None)
            else:
                found.count_translation(stream, target, problems)
    return found


def main() -> int:
    """Print the figures."""
    print("variants of the SDKs' types: each read and written again, and translated")
    print("  " + ", ".join(f"{name} {number}" for name, number in versions().items()))
    total = Figures("all")
    for found in figures():
        _show(found)
        for problem in found.problems[:_SHOWN]:
            print(f"    {problem}")
        for name in ("variants", "equal", "translations", "accounted", "problems"):
            setattr(total, name, getattr(total, name) + getattr(found, name))
    _show(total)
    return 1 if _show_carried() or total.problems else 0


def _show_carried() -> int:
    """Print the fields carried as they are; returns how many of them are not on the page."""
    entries = list(carried())
    missing = unexplained(entries, rows())
    print(f"carried as it is: {len(entries)} fields and variants ({PAGE.name} says why)")
    for entry in entries:
        print(f"  {'no reason: ' if entry in missing else ''}{entry}")
    return len(missing)


def _show(found: Figures) -> None:
    print(
        f"  {found.name:28} {found.equal:6} of {found.variants:6} equal"
        f"   {found.accounted:6} of {found.translations:6} translations accounted for"
    )


if __name__ == "__main__":
    sys.exit(main())
