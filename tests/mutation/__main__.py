"""`make mutants`: changes the source in random places, and lists what no test notices."""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from tests.mutation.selection import packages
from tests.mutation.sites import sites
from tests.mutation.trials import Mutant, Pool, Trial

ROOT = Path(__file__).resolve().parent.parent.parent
BAR = 0.95


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
    """A survivor for people."""
    mutant = trial.mutant
    left = " (not all tests were run: --budget)" if trial.is_unfinished else ""
    yield f"{mutant.file.as_posix()}:{mutant.site.line}: {mutant.site.kind}{left}"
    yield f"  - {trial.before}"
    yield f"  + {trial.after}"


def summed_up(trials: list[Trial]) -> dict[str, tuple[int, int]]:
    """How many mutants of each package were noticed, of how many."""
    sums: dict[str, tuple[int, int]] = {}
    for trial in trials:
        caught, tried = sums.get(trial.mutant.package, (0, 0))
        sums[trial.mutant.package] = caught + (trial.noticed_by is not None), tried + 1
    return sums


@contextmanager
def stopping(pool: Pool) -> Generator[None]:
    """Whoever breaks this off leaves no run behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except BaseException:
        pool.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _try_all(mutants: list[Mutant], options: argparse.Namespace) -> list[Trial]:
    pool = Pool(ROOT, budget=options.budget)
    until = monotonic() + 60 * options.minutes
    trials: list[Trial] = []

    def attempt(mutant: Mutant) -> Trial | None:
        is_over = pool.is_stopped or monotonic() > until
        return None if is_over else pool.tried(mutant)

    try:
        with ThreadPoolExecutor(options.jobs) as workers, stopping(pool):
            for number, trial in enumerate(workers.map(attempt, mutants), 1):
                if trial is None:
                    continue
                trials.append(trial)
                survived = "SURVIVED (tests left over)" if trial.is_unfinished else "SURVIVED"
                state = f"noticed by {trial.noticed_by}" if trial.noticed_by else survived
                place = f"{trial.mutant.file.as_posix()}:{trial.mutant.site.line}"
                print(f"{number}/{len(mutants)} {place}: {state}", file=sys.stderr, flush=True)
    finally:
        pool.close()
    return trials


def main() -> int:
    """Try mutants; 1 where fewer than 95 % were noticed."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("-n", "--count", type=int, default=4, help="mutants of each package")
    parser.add_argument("-p", "--package", action="append", default=[], help="only of this one")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many at once")
    parser.add_argument("--seed", type=int, default=None, help="the same seed, the same mutants")
    parser.add_argument("--minutes", type=float, default=30, help="begin no more after these")
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds of CPU time for the tests of a mutant"
    )
    options = parser.parse_args()
    seed = random.randrange(10_000) if options.seed is None else options.seed
    mutants = chosen(ROOT, options.package, options.count, seed)
    random.Random(seed).shuffle(mutants)  # where time runs out, every package has had its turn
    print(f"{len(mutants)} mutants, --seed {seed}", file=sys.stderr, flush=True)
    try:
        trials = _try_all(mutants, options)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    sums = summed_up(trials)
    caught = sum(number for number, _ in sums.values())
    survivors = [trial for trial in trials if trial.noticed_by is None]
    if not sys.stdout.isatty():
        by_package = {name: {"caught": n, "tried": of} for name, (n, of) in sorted(sums.items())}
        found = [trial.described() for trial in survivors]
        print(json.dumps({"seed": seed, "packages": by_package, "survivors": found}, indent=2))
    else:
        for trial in survivors:
            print("\n".join(told(trial)))
        for name, (number, of) in sorted(sums.items()):
            print(f"{name:24} {number} of {of} caught ({100 * number // of} %)")
    return int(caught < BAR * len(trials))


if __name__ == "__main__":
    sys.exit(main())
