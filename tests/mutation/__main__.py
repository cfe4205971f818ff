"""`make mutants`: changes the source in random places, and lists what no test notices."""

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
from tests.mutation.trials import SAMPLED, WHOLE, Mutant, Trial, Workshop

ROOT = Path(__file__).resolve().parent.parent.parent
BAR = 95.0


def chosen(root: Path, wanted: list[str], count: int, seed: int) -> list[Mutant]:
    """As many mutants of each package that is wanted, at random; the same for the same seed."""
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
    """A mutant that was not noticed, for people."""
    mutant = trial.mutant
    tests = f"{trial.tests} tests are known to run it"
    place = f"{mutant.file.as_posix()}:{mutant.site.line}"
    yield f"{place}: {mutant.site.kind}: {trial.verdict}, {tests}"
    yield f"  - {trial.before}"
    yield f"  + {trial.after}"


class Sum(NamedTuple):
    """How many mutants were noticed, survived, and had time for neither."""

    caught: int = 0
    survived: int = 0
    undecided: int = 0
    timed_out: int = 0

    @property
    def share(self) -> float:
        """How many of those that were decided were noticed, in per cent."""
        return 100 * self.caught / max(1, self.caught + self.survived)

    def __str__(self) -> str:
        rest = [f", {self.undecided} undecided"] * (self.undecided > 0)
        rest += [f", {self.timed_out} timed out"] * (self.timed_out > 0)
        return (
            f"{self.caught} of {self.caught + self.survived} caught ({self.share:.1f} %)"
            + "".join(rest)
        )


def summed_up(trials: list[Trial]) -> dict[str, Sum]:
    """What became of the mutants of each package."""
    sums: dict[str, Sum] = {}
    for trial in trials:
        before, name = sums.get(trial.mutant.package, Sum()), trial.verdict.value
        sums[trial.mutant.package] = before._replace(**{name: getattr(before, name) + 1})
    return sums


def _total(sums: Iterable[Sum]) -> Sum:
    return Sum(*map(sum, zip(*sums, strict=True)))


@contextmanager
def stopping(workshops: list[Workshop]) -> Generator[None]:
    """Whoever breaks this off leaves no run behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except BaseException:
        for workshop in workshops:
            workshop.close()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _by_layer(mutants: list[Mutant]) -> list[list[Mutant]]:
    layers: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        layers.setdefault(mutant.package.partition("/")[0], []).append(mutant)
    return list(layers.values())


def _try_all(
    mutants: list[Mutant], options: argparse.Namespace, cases: str = SAMPLED
) -> list[Trial]:
    """One layer after the other, each in its share of the time."""
    begin, trials = monotonic(), []
    workshops: list[Workshop] = []

    def attempt(group: list[Mutant], until: float) -> Iterator[Trial]:
        workshop = Workshop(ROOT, budget=options.budget, cases=cases)
        workshops.append(workshop)
        try:
            yield from workshop.trials(group, until)
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
    place = f"{trial.mutant.file.as_posix()}:{trial.mutant.site.line}"
    print(
        f"{number} {place}: {trial.verdict} {trial.noticed_by or ''}", file=sys.stderr, flush=True
    )
    if trial.noticed_by is None:
        print("\n".join(told(trial)), file=sys.stderr, flush=True)


def _compare(left: list[Trial], again: list[Trial]) -> None:
    """Tell which mutants only the whole tables notice."""
    noticed = [trial for trial in again if trial.noticed_by is not None]
    print(
        f"{len(noticed)} of {len(left)} that were left are noticed by the whole tables"
        f" ({len(again)} tried)", file=sys.stderr,
    )  # fmt: skip
    for trial in noticed:
        print(
            f"  by {trial.noticed_by}: {trial.mutant.file}:{trial.mutant.site.line}",
            file=sys.stderr,
        )


def main() -> int:
    """Try mutants; 1 where fewer than 95 % were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("-n", "--count", type=int, default=4, help="mutants of each package")
    parser.add_argument("-p", "--package", action="append", default=[], help="only of this one")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same mutants")
    parser.add_argument("--minutes", type=float, default=30, help="begin no more after these")
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of CPU time for each mutant"
    )
    parser.add_argument(
        "--whole", action="store_true",
        help="try what no test noticed again, with all cases of the tables that make test samples",
    )  # fmt: skip
    options = parser.parse_args()
    seed = random.randrange(10_000) if options.seed is None else options.seed
    mutants = chosen(ROOT, options.package, options.count, seed)
    random.Random(seed).shuffle(mutants)  # where time runs out, every package has had its turn
    print(f"{len(mutants)} mutants, --seed {seed}", file=sys.stderr, flush=True)
    try:
        trials = _try_all(mutants, options)
        if options.whole and (left := [each for each in trials if each.noticed_by is None]):
            again = _try_all([trial.mutant for trial in left], options, WHOLE)
            _compare(left, again)
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
    return int(total.share < BAR)


if __name__ == "__main__":
    sys.exit(main())
