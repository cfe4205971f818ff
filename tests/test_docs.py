"""The documentation is correct: its Python and its commands run, and what they name exists.

The ```python blocks of one file share a namespace and run in order, `await` included. A block
that can't run here follows a comment with the reason: `<!-- not run: needs an API key -->`.

In blocks of ```console and ```bash the `make` targets, `dragoman` commands and extras must exist.
A ```console block with `$ dragoman …` commands is run: the output of a command, on standard output
and standard error, must be the text below it, if there is any (`…` stands for any text), and it
must succeed unless `$ echo $?` follows. The blocks of one file share a folder, in which
`$ cat FILE` creates the file that it shows, if there is none.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import subprocess
import sys
import textwrap
import tomllib
import traceback
from collections.abc import Iterator
from contextlib import chdir
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

import pytest
from click.testing import CliRunner

from dragoman.cli.commands import dragoman

pytestmark = pytest.mark.whole

ROOT = Path(__file__).resolve().parent.parent
PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))) if page.exists()]

FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<ticks>`{3,})[ ]*(?P<language>[\w-]*)")
NOT_RUN = re.compile(r"^\s*<!--\s*not run\s*:?\s*(?P<reason>.*?)\s*-->\s*$")
EXTRAS = re.compile(r"\bdragoman\[([\w,\s-]+)\]")
NEEDS_SHELL = re.compile(r"[|&;<>$`*~]")
TARGET = re.compile(r"^([\w-]+):(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the line of its first line of code, and its content."""

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
            not_run = None  # the comment belongs to the block right after it


def run(page: str, code: list[Block], namespace: dict[str, object]) -> None:
    """Runs blocks in order; the first that fails raises with `page:line`."""
    with (
        asyncio.Runner() as runner
    ):  # one loop for the page: a block may use what an earlier one opened
        for block in code:
            try:
                source = (
                    "\n" * (block.line - 1) + block.code
                )  # so that line numbers in tracebacks are right
                compiled = compile(
                    source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True
                )
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
    """Names in a block of shell commands that don't exist."""
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


@dataclass(frozen=True, slots=True)
class Command:
    """A command in a block: its line, and the output shown below it."""

    line: int
    text: str
    shown: str


def commands(block: Block) -> list[Command]:
    """The commands of a block of ```console."""
    found: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(block.code.splitlines(), start=block.line):
        if line.startswith("$ "):
            found.append((number, line[2:], []))
        elif found:
            found[-1][2].append(line)
    return [Command(line, text, "\n".join(shown).strip("\n")) for line, text, shown in found]


def is_run(block: Block) -> bool:
    """Whether the commands of a block are to be run."""
    is_ours = any(command.text.startswith("dragoman ") for command in commands(block))
    return block.language == "console" and block.not_run is None and is_ours


def run_commands(page: str, told: list[Command], folder: Path) -> None:
    """Runs commands in order; the first with other output raises with `page:line`."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "dragoman"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m dragoman.cli "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    place = folder / "work"
    place.mkdir()
    code = 0
    for position, command in enumerate(told):
        name = command.text.removeprefix("cat ")
        if name != command.text and "/" not in name and not (place / name).exists():
            (place / name).write_text(command.shown + "\n")
            continue
        if command.text == "echo $?":
            assert command.shown == str(code), f"{page}:{command.line}: the exit code is {code}"
            continue
        code, printed = _run_command(command.text, place, environment)
        wanted = ".*".join(map(re.escape, command.shown.split("…")))
        is_as_shown = not command.shown or re.fullmatch(wanted, printed, re.DOTALL)
        assert is_as_shown, f"{page}:{command.line}: it prints\n{printed}"
        is_told = [after.text for after in told[position + 1 : position + 2]] == ["echo $?"]
        assert code == 0 or is_told, f"{page}:{command.line}: ends with exit code {code}"


def _run_command(text: str, place: Path, environment: dict[str, str]) -> tuple[int, str]:
    """The exit code of a command and what it prints, on both streams.

    Ours runs here, which saves loading it each time; in a shell where the line needs one.
    """
    if text.startswith("dragoman ") and not NEEDS_SHELL.search(text):
        with chdir(place):
            result = CliRunner().invoke(dragoman, shlex.split(text)[1:], prog_name="dragoman")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output.strip("\n")
    done = subprocess.run(
        ["sh", "-c", f"exec 2>&1; {text}"],
        cwd=place, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.strip("\n")


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
    """Every page of the documentation."""

    def test_python_runs(self, page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The blocks of a page, copied into a file, are a working program."""
        name = page.relative_to(ROOT).as_posix()
        module = ModuleType("documentation")  # types in the examples look their names up in it
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.chdir(tmp_path)  # examples may write files
        code = [b for b in blocks(page.read_text()) if b.language == "python"]
        with patch.dict(os.environ):  # examples may set variables
            run(name, [b for b in code if b.not_run is None], module.__dict__)

    def test_skipped_blocks_give_a_reason(self, page: Path) -> None:
        """The page has to say why a block isn't run."""
        bare = [b.line for b in blocks(page.read_text()) if b.not_run == ""]
        assert bare == []

    def test_commands_exist(self, page: Path) -> None:
        """A command in the documentation can be typed as it is."""
        shell = [b for b in blocks(page.read_text()) if b.language in {"bash", "console", "sh"}]
        assert [problem for block in shell for problem in problems(block)] == []

    def test_commands_print_what_is_shown(self, page: Path, tmp_path: Path) -> None:
        """The output is that of the page."""
        told = [c for b in blocks(page.read_text()) if is_run(b) for c in commands(b)]
        run_commands(page.relative_to(ROOT).as_posix(), told, tmp_path)


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
    """The reader itself finds the faults that it is there for."""

    def test_blocks_have_line_numbers_and_reasons(self) -> None:
        """Lines are counted as in an editor, and reasons stay with their block."""
        found = [(b.line, b.language, b.code, b.not_run) for b in blocks(PAGE)]
        assert found == [
            (3, "python", "x = 1\n", None),
            (8, "python", "boom()\n", "needs a key"),
            (12, "python", "x += 1\n", None),
            (16, "python", "boom()\n", ""),
            (20, "console", "$ make test\n```\n", None),
        ]

    def test_a_failing_block_names_file_and_line(self) -> None:
        """Editors can open that location."""
        code = [Block(3, "python", "x = 1\n", None), Block(7, "python", "x\n1 / 0\n", None)]
        with pytest.raises(AssertionError, match=r"page\.md:8: ZeroDivisionError"):
            run("page.md", code, {})

    def test_a_syntax_error_names_file_and_line(self) -> None:
        """Before anything was run."""
        with pytest.raises(AssertionError, match=r"page\.md:4: SyntaxError"):
            run("page.md", [Block(3, "python", "x = 1\nx =\n", None)], {})

    def test_blocks_share_names_and_may_await(self) -> None:
        """A page is one program."""
        namespace: dict[str, object] = {}
        code = "import asyncio\nawait asyncio.sleep(0)\nx = 1\n"
        run(
            "page.md",
            [Block(1, "python", code, None), Block(9, "python", "y = x\n", None)],
            namespace,
        )
        assert namespace["y"] == 1

    def test_commands_with_the_shown_output_pass(self, tmp_path: Path) -> None:
        """Shown files are created, and both streams are one, as on a terminal."""
        code = (
            "$ cat note.txt\nHi\nthere\n$ cat note.txt | wc -l\n2\n"
            "$ dragoman --version\ndragoman …\n"
            "$ dragoman nonsense\n…No such command…\n$ echo $?\n2\n"
        )
        block = Block(1, "console", code, None)
        assert is_run(block)
        run_commands("page.md", commands(block), tmp_path)

    @pytest.mark.parametrize(
        ("code", "fault"),
        [
            ("$ dragoman --version\ndragoman 0\n", r"page\.md:1: it prints\s+dragoman "),
            ("$ true\n$ dragoman nonsense\n", r"page\.md:2: ends with exit code 2"),
            ("$ dragoman --version\n$ echo $?\n1\n", r"page\.md:2: the exit code is 0"),
        ],
    )
    def test_commands_with_other_output_are_found(
        self, code: str, fault: str, tmp_path: Path
    ) -> None:
        """With the line and the actual output."""
        with pytest.raises(AssertionError, match=fault):
            run_commands("page.md", commands(Block(1, "console", code, None)), tmp_path)

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
        """Targets, commands and extras; everything else is ignored."""
        assert list(problems(Block(1, language, code, None))) == expected
