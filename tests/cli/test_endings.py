"""How commands end after unexpected errors."""

from __future__ import annotations

import errno
import subprocess
import sys

import pytest

from dragoman.cli.exit_codes import Ending, clean_ending
from dragoman.errors import ConfigError, DragomanError, InvalidInputError
from tests.cli.samples import SECRET


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (Ending(1), 1, ""),
        (Ending(4, "no room"), 4, "dragoman: no room\n"),
        (ConfigError("unknown"), 2, "dragoman: unknown\n"),
        (InvalidInputError("broken"), 3, "dragoman: broken\n"),
        (DragomanError("odd"), 3, "dragoman: odd\n"),
        (OSError(errno.ENOSPC, "No space left", "a\x1bb"), 4, "dragoman: a␛b: No space left\n"),
        (OSError(), 4, "dragoman: OSError\n"),
        (KeyboardInterrupt(), 130, "dragoman: interrupted\n"),
    ],
)
def test_every_error_has_its_exit_code(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints at most one line."""
    with pytest.raises(SystemExit) as ended, clean_ending():
        raise error
    assert ended.value.code == code
    assert capsys.readouterr().err == said


def test_an_internal_error_says_where_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Its text, which may hold user content, is not printed."""
    with pytest.raises(SystemExit) as ended, clean_ending():
        raise RuntimeError(SECRET)
    assert ended.value.code == 70
    said = capsys.readouterr().err
    assert "(RuntimeError at test_endings.py:" in said
    assert "please report it" in said
    assert SECRET not in said


def test_a_closed_pipe_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    """The exit code is that of the signal."""
    with pytest.raises(SystemExit) as ended, clean_ending():
        raise BrokenPipeError
    assert ended.value.code == 141
    assert capfd.readouterr().err == ""


def test_success_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The program continues after the block."""
    with clean_ending():
        pass
    assert capsys.readouterr().err == ""


_EARLY = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Finder())
sys.argv = ["dragoman", "dialects"]
from dragoman.cli import main
main()
"""


@pytest.mark.parametrize("name", ["dragoman.cli.commands", "dragoman.cli.printing", "click"])
def test_an_interrupt_during_imports_is_clean(name: str) -> None:
    """Imports take a while on a slow machine."""
    done = subprocess.run(
        [sys.executable, "-c", _EARLY.format(name=name)], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "dragoman: interrupted\n")
