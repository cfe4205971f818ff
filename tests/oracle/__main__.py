"""`python -m tests.oracle`: compares this tree with a frozen one; see the package's docstring."""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, takewhile
from pathlib import Path
from typing import IO, Any, cast

from dragoman.model.jsontext import dumps
from tests.corpus import Corpus, CorpusNotFoundError
from tests.oracle import FROZEN, observing
from tests.oracle.observing import Case, Observation
from tests.wire import every_place
from tests.wire.recorded import SPOKEN_BY, recordings

ROOT = Path(__file__).resolve().parent.parent.parent
KINDS = ("request", "response", "stream")


def recorded(dialect: str) -> Iterator[Case]:
    """The recorded bodies of a dialect."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError:
        return
    for each in recordings(corpus, dialect):
        name, path = each.row.file, each.request_path
        if isinstance(each.request_body, dict):
            yield name, "request", dialect, dumps(each.request_body), path
        if each.response_stream is not None:
            yield name, "stream", dialect, each.response_stream, None
        elif each.response_body is not None:
            yield name, "response", dialect, dumps(each.response_body), None


def changed() -> Iterator[Case]:
    """Recorded and made bodies with one odd value each."""
    for number, case in enumerate(every_place.cases()):
        if case.seed.kind in KINDS:
            name = f"changed {number}: {case}".encode("utf-8", "backslashreplace").decode()
            yield name, case.seed.kind, case.seed.dialect, every_place.written(case), None


def cases(dialects: list[str], kinds: list[str], every: int, changed_every: int) -> Iterator[Case]:
    """What is compared: one in so many of the recorded and of the changed bodies."""
    for dialect in dialects:
        yield from islice((each for each in recorded(dialect) if each[1] in kinds), 0, None, every)
    if changed_every:
        chosen = (each for each in changed() if each[1] in kinds and each[2] in dialects)
        yield from islice(chosen, 0, None, changed_every)


def frozen_source(commit: str, folder: Path) -> Path:
    """The `src` of a commit."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "src"


class Tree:
    """A process that observes with the source of one tree."""

    def __init__(self, source: Path) -> None:
        """Start it."""
        self._process = subprocess.Popen(
            [sys.executable, observing.__file__],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(source), "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        self._answers = observing.frames(cast("IO[bytes]", self._process.stdout))  # type: ignore[arg-type]

    def ask(self, case: Case) -> None:
        """Give it a case."""
        observing.write(cast("Any", self._process.stdin), case)

    def answer(self) -> Observation:
        """What it saw in the case."""
        return cast("Observation", next(self._answers))

    def close(self) -> None:
        """End it."""
        self._process.kill()
        with self._process:
            pass  # it closes the pipes


def compared(
    trees: tuple[Tree, Tree], every: Iterator[Case]
) -> Iterator[tuple[Case, Observation, Observation]]:
    """Each case, and what both trees saw."""
    for case in every:
        for tree in trees:
            tree.ask(case)
        old, new = (tree.answer() for tree in trees)
        yield case, old, new


def told(section: str, old: str | None, new: str | None, width: int) -> Iterator[str]:
    """Where two texts part, for people."""
    if old is None or new is None:
        yield f"    only {'new' if old is None else 'old'}: {(old or new or '')[:width]}"
        return
    same = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    at = sum(1 for _ in same)
    start = max(0, at - width // 4)
    yield f"    {section}, from character {at}"
    yield f"      - {old[start : start + width]}"
    yield f"      + {new[start : start + width]}"


def _options(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.oracle", description=__doc__)
    parser.add_argument("--commit", default=FROZEN)
    parser.add_argument("--dialect", action="append", choices=[*SPOKEN_BY])
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--every", type=int, default=50, help="one recorded body in so many")
    parser.add_argument(
        "--changed", type=int, default=5000, help="one changed body in so many; 0: none"
    )
    parser.add_argument(
        "--ignore", action="append", default=[], help="sections whose name has this word"
    )
    parser.add_argument("--show", type=int, default=10, help="cases to show in full")
    parser.add_argument("--width", type=int, default=300)
    return parser.parse_args(given)


def main(given: list[str]) -> int:
    """Compare; the number of cases that differ."""
    options = _options(given)
    chosen = cases(
        options.dialect or [*SPOKEN_BY], options.kind or [*KINDS], options.every, options.changed
    )
    sections, differing, count = Counter[str](), 0, 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="oracle-")))
        trees = Tree(frozen_source(options.commit, folder)), Tree(ROOT / "src")
        for tree in trees:
            stack.callback(tree.close)
        for (name, kind, dialect, _, _), old, new in compared(trees, chosen):
            count += 1
            parted = [
                section
                for section in sorted(old.keys() | new.keys())
                if old.get(section) != new.get(section)
                and not any(word in section for word in options.ignore)
            ]
            if not parted:
                continue
            differing += 1
            sections.update(parted)
            if differing <= options.show:
                print(f"{dialect} {kind}: {name}")
                for section in parted[:4]:
                    lines = told(section, old.get(section), new.get(section), options.width)
                    print("\n".join(lines))
    print(f"{count} cases, {differing} differ")
    for section, times in sections.most_common():
        print(f"  {times:6} {section}")
    return differing


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
