"""`dragoman completion`: Tab completion in shells and its installation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli.commands import dragoman as command


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary home folder with bash as the shell."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/usr/bin/bash")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["completion", *arguments])


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("shell", ["bash", "fish", "zsh"])
def test_each_shell_has_its_script(shell: str, home: Path) -> None:
    """The script asks the program itself for completions."""
    done = run(shell)
    assert done.exit_code == 0
    assert "_DRAGOMAN_COMPLETE" in done.stdout
    assert not any(home.iterdir())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/dragoman"),
        ("fish", ".config/fish/completions/dragoman.fish"),
        ("zsh", ".zfunc/_dragoman"),
    ],
)
def test_installing_says_where(shell: str, place: str, home: Path) -> None:
    """Installing twice changes nothing further."""
    for _ in range(2):
        done = run(shell, "--install")
        assert done.exit_code == 0
        assert str(home / place) in done.stderr.replace("\n", "")
        assert (home / place).read_text() == run(shell).stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_the_shell_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown shell must be named."""
    assert run().stdout == run("bash").stdout
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert run().exit_code == 2


def test_the_program_completes() -> None:
    """The program answers as the shells' scripts ask."""
    words = {"COMP_WORDS": "dragoman con", "COMP_CWORD": "1", "_DRAGOMAN_COMPLETE": "bash_complete"}
    starts = "import sys; sys.argv = ['dragoman']; from dragoman.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", starts], env={**os.environ, **words}, capture_output=True,
        text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "plain,convert\n"
