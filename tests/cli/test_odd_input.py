"""Files with a wrong value somewhere: every command ends with a message, never a traceback."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from dragoman.cli.commands import dragoman as command
from tests.wire.every_place import one, written
from tests.wire.mutations import DIALECTS

_SAMPLE = 40
_COMMANDS = (
    ["show", "-"], ["show", "-", "--json"], ["check", "-"], ["check", "-", "--target", "anthropic"],
    ["convert", "-", "--to", "openai-chat"], ["convert", "-", "--to", "canonical"],
    ["history", "import", "-", "--store", "memory:"],
)  # fmt: skip


def _run(number: int) -> None:
    case = one(number)
    if case is None:
        return
    chance = Random(number)
    words = list(chance.choice(_COMMANDS))
    if words[0] == "convert" and chance.random() < 0.5:
        words[-1] = chance.choice(DIALECTS)
    result = CliRunner().invoke(command, words, input=written(case))
    failure = result.exception
    assert failure is None or isinstance(failure, SystemExit), (words, str(case), failure)
    assert result.exit_code in range(6), (words, str(case), result.stderr)
    assert "Traceback" not in result.output


def test_odd_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On standard input: bodies, streams, errors and stored documents."""
    monkeypatch.chdir(tmp_path)
    for number in range(_SAMPLE):
        _run(number)


@pytest.mark.slow
def test_much_odd_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, many times."""
    monkeypatch.chdir(tmp_path)
    for number in range(3_000):
        _run(1_000 + number)
