"""`make mutants`: changes the source in random places, and lists changes that no test detects."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from tests.mutation.selection import packages
from tests.mutation.sites import sites
from tests.mutation.trials import Mutant, Trial, Workshop

ROOT = Path(__file__).resolve().parent.parent.parent
BAR = 0.95


def chosen(root: Path, wanted: list[str], count: int, seed: int) -> list[Mutant]:
    """That many random mutants of each selected package; the same for the same seed."""
    found = packages(root)
    if unknown := [name for name in wanted if name not in found]:
        msg = f"no package {', '.join(unknown)}; there are {', '.join(sorted(found))}"
        raise SystemExit(msg)
    mutants: list[Mutant] = []
    for name in wanted or sorted(found):
        everywhere = [
            Mutant(name, file, site)
            for file in found[name]
            for site in sites((root / file).read_text())
        ]
        pick = random.Random(f"{seed} {name}")
        mutants += pick.sample(everywhere, min(count, len(everywhere)))
    return mutants


def told(trial: Trial) -> Iterator[str]:
    """A surviving mutant as text."""
    mutant = trial.mutant
    left = " (not all tests were run: --budget)" if trial.is_unfinished else ""
    yield f"{mutant.file.as_posix()}:{mutant.site.line}: {mutant.site.kind}{left}"
    yield f"  - {trial.before}"
    yield f"  + {trial.after}"


class Sum(NamedTuple):
    """How many mutants were detected, timed out and survived."""

    caught: int = 0
    timed_out: int = 0
    survived: int = 0

    def __str__(self) -> str:
        share = 100 * self.caught / max(1, self.caught + self.survived)
        rest = f", {self.timed_out} timed out" * (self.timed_out > 0)
        return f"{self.caught} of {self.caught + self.survived} caught ({share:.1f} %){rest}"


def summed_up(trials: list[Trial]) -> dict[str, Sum]:
    """The counts of each package."""
    sums: dict[str, Sum] = {}
    for trial in trials:
        before = sums.get(trial.mutant.package, Sum())
        name = "survived" if trial.noticed_by is None else "caught"
        name = "timed_out" if trial.has_timed_out else name
        sums[trial.mutant.package] = before._replace(**{name: getattr(before, name) + 1})
    return sums


def _total(sums: Iterable[Sum]) -> Sum:
    return Sum(*map(sum, zip(*sums, strict=True)))


@contextmanager
def stopping(workshops: list[Workshop]) -> Generator[None]:
    """An interrupt leaves no run behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except BaseException:
        for workshop in workshops:
            workshop.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _by_layer(mutants: list[Mutant]) -> list[list[Mutant]]:
    layers: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        layers.setdefault(mutant.package.partition("/")[0], []).append(mutant)
    return list(layers.values())


def _try_all(mutants: list[Mutant], options: argparse.Namespace) -> list[Trial]:
    """One layer after the other, each in its share of the time."""
    begin, trials = monotonic(), []
    workshops: list[Workshop] = []

    def attempt(group: list[Mutant], until: float) -> Iterator[Trial]:
        workshop = Workshop(ROOT, budget=options.budget)
        workshops.append(workshop)
        try:
            workshop.load(group)
            for mutant in group:
                if monotonic() > until:
                    return
                yield workshop.tried(mutant)
        finally:
            workshop.close()

    with stopping(workshops):
        done = 0
        for group in _by_layer(mutants):
            done += len(group)
            for trial in attempt(group, begin + 60 * options.minutes * done / len(mutants)):
                trials.append(trial)
                _report(trial, f"{len(trials)}/{len(mutants)}")
    return trials


def _report(trial: Trial, number: str) -> None:
    survived = "SURVIVED (tests left over)" if trial.is_unfinished else "SURVIVED"
    noticed = "timed out in" if trial.has_timed_out else "noticed by"
    state = f"{noticed} {trial.noticed_by}" if trial.noticed_by else survived
    place = f"{trial.mutant.file.as_posix()}:{trial.mutant.site.line}"
    print(f"{number} {place}: {state}", file=sys.stderr, flush=True)
    if trial.noticed_by is None:
        print("\n".join(told(trial)), file=sys.stderr, flush=True)


def main() -> int:
    """Try mutants; returns 1 if fewer than 95 % were detected."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("-n", "--count", type=int, default=4, help="mutants of each package")
    parser.add_argument("-p", "--package", action="append", default=[], help="only of this one")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same mutants")
    parser.add_argument("--minutes", type=float, default=30, help="begin no more after these")
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of CPU time for the tests of a mutant"
    )
    options = parser.parse_args()
    seed = random.randrange(10_000) if options.seed is None else options.seed
    mutants = chosen(ROOT, options.package, options.count, seed)
    random.Random(seed).shuffle(mutants)  # if time runs out, every package has had its turn
    print(f"{len(mutants)} mutants, --seed {seed}", file=sys.stderr, flush=True)
    try:
        trials = _try_all(mutants, options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    sums = summed_up(trials)
    total = _total(sums.values()) if sums else Sum()
    survivors = [trial for trial in trials if trial.noticed_by is None]
    if not sys.stdout.isatty():
        by_package = {name: each._asdict() for name, each in sorted(sums.items())}
        found = [trial.described() for trial in survivors]
        print(json.dumps({"seed": seed, "packages": by_package, "survivors": found}, indent=2))
    else:
        for trial in survivors:
            print("\n".join(told(trial)))
        for name, each in sorted(sums.items()):
            print(f"{name:24} {each}")
    print(f"--seed {seed}: {total}", file=sys.stderr)
    return int(total.caught < BAR * (total.caught + total.survived))


if __name__ == "__main__":
    sys.exit(main())
