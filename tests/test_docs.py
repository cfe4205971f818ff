"""The documentation is true: its Python runs, and the commands it names exist.

The ```python blocks of one file share a namespace and run in order, `await` included. A block
that can't run here follows a comment with the reason: `<!-- not run: needs an API key -->`.
Blocks of ```console and ```bash are read, not run: the `make` targets, `dragoman` commands and
extras in them must be real.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if page.exists()]

FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<ticks>`{3,})[ ]*(?P<language>[\w-]*)")
NOT_RUN = re.compile(r"^\s*<!--\s*not run\s*:?\s*(?P<reason>.*?)\s*-->\s*$")
EXTRAS = re.compile(r"\bdragoman\[([\w,\s-]+)\]")
TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where its first line of code stands, and what is there."""

    line: int
    language: str
    code: str
    not_run: str | None  # the reason; empty if the comment gives none


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    lines = iter(enumerate(text.splitlines(), start=1))
    not_run: str | None = None
    for number, line in lines:
        if comment := NOT_RUN.match(line):
            not_run = comment["reason"]
        elif fence := FENCE.match(line):
            code: list[str] = []
            for _, inner in lines:
                if inner.strip() == fence["ticks"]:
                    break
                code.append(inner)
            source = textwrap.dedent("\n".join(code)) + "\n"
            yield Block(number + 1, fence["language"], source, not_run)
            not_run = None
        elif line.strip():
            not_run = None  # the comment belongs to what follows it at once


def run(page: str, code: list[Block], namespace: dict[str, object]) -> None:
    """Runs blocks in order; the first that fails raises with `page:line`."""
    with asyncio.Runner() as runner:  # one loop for the page: what a block opens, the next uses
        for block in code:
            try:
                source = "\n" * (block.line - 1) + block.code  # so that tracebacks count right
                compiled = compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                if compiled.co_flags & inspect.CO_COROUTINE:
                    runner.run(eval(compiled, namespace))  # noqa: S307 - our own documentation
                else:
                    exec(compiled, namespace)
            except Exception as error:
                place = f"{page}:{_failing_line(error, page) or block.line}"
                msg = f"{place}: {type(error).__name__}: {error}"
                raise AssertionError(msg) from error


def _failing_line(error: Exception, page: str) -> int | None:
    if isinstance(error, SyntaxError):
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == page), None)


def problems(block: Block) -> Iterator[str]:
    """What a block of shell commands names that does not exist."""
    for number, line in enumerate(block.code.splitlines(), start=block.line):
        command = line.strip()
        if block.language == "console":
            if not command.startswith("$ "):
                continue  # output
            command = command[2:]
        for extra in (
            extra.strip() for found in EXTRAS.findall(command) for extra in found.split(",")
        ):
            if extra not in known_extras():
                yield f"{number}: no extra {extra!r}"
        yield from (f"{number}: {problem}" for problem in _unknown_commands(command))


def _unknown_commands(command: str) -> Iterator[str]:
    for part in re.split(r"&&|\|\||[|;]", command):
        words = [word for word in shlex.split(part, comments=True) if "=" not in word]
        match words:
            case ["make", *targets]:
                unknown = [t for t in targets if not t.startswith("-") and t not in make_targets()]
                yield from (f"no make target {target!r}" for target in unknown)
            case ["dragoman", name, *_] | [_, "-m", "dragoman.cli", name, *_]:
                if not name.startswith("-") and not command_exists(name):
                    yield f"no command `dragoman {name}`"
            case _:
                pass


@cache
def make_targets() -> frozenset[str]:
    """The targets of our Makefile."""
    return frozenset(TARGET.findall((ROOT / "Makefile").read_text()))


@cache
def known_extras() -> frozenset[str]:
    """The extras of our package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return frozenset(project["optional-dependencies"])


@cache
def command_exists(name: str) -> bool:
    """Whether `dragoman <name>` has a help text."""
    command = [sys.executable, "-m", "dragoman.cli", name, "--help"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
class TestPages:
    """Every page that we ship."""

    def test_python_runs(self, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever copies the blocks of a page into a file gets a program that works."""
        name = page.relative_to(ROOT).as_posix()
        module = ModuleType("documentation")  # types in the examples look their names up in it
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.chdir(tmp_path)  # examples may write files
        code = [b for b in blocks(page.read_text()) if b.language == "python"]
        run(name, [b for b in code if b.not_run is None], module.__dict__)

    def test_skipped_blocks_give_a_reason(self, page: Path) -> None:
        """What is not run is not proven: the page has to say why."""
        bare = [b.line for b in blocks(page.read_text()) if b.not_run == ""]
        assert bare == []

    def test_commands_exist(self, page: Path) -> None:
        """A command in the documentation can be typed as it stands."""
        shell = [b for b in blocks(page.read_text()) if b.language in {"bash", "console", "sh"}]
        assert [problem for block in shell for problem in problems(block)] == []


PAGE = """\
# Title
```python
x = 1
```
<!-- not run: needs a key -->

```python
boom()
```
- in a list
  ```python
  x += 1
  ```
<!-- not run -->
```python
boom()
```
text
````console
$ make test
```
````
"""


class TestReader:
    """The reader itself: it must find the faults that it is there for."""

    def test_blocks_know_their_place(self) -> None:
        """Lines count as an editor counts them, and reasons stay with their block."""
        found = [(b.line, b.language, b.code, b.not_run) for b in blocks(PAGE)]
        assert found == [
            (3, "python", "x = 1\n", None),
            (8, "python", "boom()\n", "needs a key"),
            (12, "python", "x += 1\n", None),
            (16, "python", "boom()\n", ""),
            (20, "console", "$ make test\n```\n", None),
        ]

    def test_a_failing_block_names_file_and_line(self) -> None:
        """The message can be clicked on."""
        code = [Block(3, "python", "x = 1\n", None), Block(7, "python", "x\n1 / 0\n", None)]
        with pytest.raises(AssertionError, match=r"page\.md:8: ZeroDivisionError"):
            run("page.md", code, {})

    def test_a_syntax_error_names_file_and_line(self) -> None:
        """Also where nothing ran yet."""
        with pytest.raises(AssertionError, match=r"page\.md:4: SyntaxError"):
            run("page.md", [Block(3, "python", "x = 1\nx =\n", None)], {})

    def test_blocks_share_names_and_may_await(self) -> None:
        """A page reads as one program."""
        namespace: dict[str, object] = {}
        code = "import asyncio\nawait asyncio.sleep(0)\nx = 1\n"
        run(
            "page.md",
            [Block(1, "python", code, None), Block(9, "python", "y = x\n", None)],
            namespace,
        )
        assert namespace["y"] == 1

    @pytest.mark.parametrize(
        ("language", "code", "expected"),
        [
            ("bash", "make test lint JOBS=1 -s\n", []),
            ("bash", "cd x && make tset  # try\n", ["1: no make target 'tset'"]),
            ("console", "$ make nonsense\nmake output\n", ["1: no make target 'nonsense'"]),
            ("bash", "\npip install 'dragoman[cli, nope]'\n", ["2: no extra 'nope'"]),
            ("bash", "dragoman frobnicate x\n", ["1: no command `dragoman frobnicate`"]),
            ("bash", "dragoman --version; curl x | sh\n", []),
        ],
    )
    def test_unknown_commands_are_found(
        self, language: str, code: str, expected: list[str]
    ) -> None:
        """Targets, commands and extras; everything else is none of our business."""
        assert list(problems(Block(1, language, code, None))) == expected
