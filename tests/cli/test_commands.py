"""The command line, as people type it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from click.testing import CliRunner

import dragoman
from dragoman.cli.commands import dragoman as command


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_the_commands(flag: str) -> None:
    """Help lists every command."""
    result = CliRunner().invoke(command, [flag])
    assert result.exit_code == 0
    for name in ("ask", "chat", "tour"):
        assert name in result.output
    assert "..." not in result.output.partition("Commands:")[2]  # no description is cut off


def test_the_version_is_the_package_s() -> None:
    """`dragoman --version` prints the version of the package."""
    result = CliRunner().invoke(command, ["--version"])
    assert result.output == f"dragoman {dragoman.__version__}\n"


@pytest.mark.parametrize("module", ["dragoman", "dragoman.cli"])
def test_it_runs_as_a_module(module: str) -> None:
    """`python -m dragoman` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"dragoman {dragoman.__version__}\n"


def test_without_its_packages_it_says_what_to_install() -> None:
    """If click is missing, the error names the extra to install instead of a traceback."""
    code = "import sys; sys.modules['click'] = None; from dragoman.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "The dragoman command needs the cli extra: pip install 'dragoman[cli]'\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "echo:", "Hi there"),
        ("echo:", "Hi there"),
        ("-m", "echo:", "Hi there"),
        ("Hi there", "-m", "echo:"),
        ("--no-history", "-m", "echo:", "Hi", "there"),
    ],
)
def test_a_question_needs_no_command(arguments: tuple[str, ...]) -> None:
    """Arguments that can't be a command are a question."""
    done = CliRunner().invoke(command, arguments)
    assert (done.exit_code, done.stdout) == (0, "Hi there\n"), done.output


@pytest.mark.parametrize("word", ["convrt", "aks", "-", "--versoin"])
def test_a_mistyped_command_is_never_sent_as_a_question(word: str) -> None:
    """Not even if a default model is set."""
    done = CliRunner().invoke(command, [word], env={"DRAGOMAN_MODEL": "echo:"})
    assert (done.exit_code, done.stdout) == (2, "")
