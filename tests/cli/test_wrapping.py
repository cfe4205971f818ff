"""Text on terminals of any width."""

from __future__ import annotations

import re

import pytest

from dragoman.cli import wrapping
from dragoman.cli.wrapping import Flow, Piece, say, say_pieces
from tests.cli.terminals import dragoman, terminal

PROSE = "The Old Bridge of Mostar was built by Mimar Hayruddin, and finished in 1566."


@pytest.fixture(params=[20, 40, None])
def width(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """The width of the terminal; None: a pipe."""
    monkeypatch.setattr(wrapping, "terminal_width", lambda _stream=None: request.param)
    return request.param  # type: ignore[no-any-return]  # one of the above


def test_text_is_wrapped_at_spaces(width: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """In a pipe, it is one line."""
    say(PROSE)
    rows = capsys.readouterr().out.splitlines()
    assert " ".join(rows) == PROSE
    assert (len(rows) == 1) if width is None else max(map(len, rows)) <= width


def test_growing_text_is_wrapped_as_well(
    width: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """However it is cut into pieces."""
    for size in (1, 3, 100):
        flow = Flow()
        for start in range(0, len(PROSE), size):
            flow.write(PROSE[start : start + size])
        flow.end()
        rows = [row.rstrip() for row in capsys.readouterr().out.splitlines()]
        assert " ".join(rows) == PROSE
        assert (len(rows) == 1) if width is None else max(map(len, rows)) <= width


def test_a_row_is_continued_below_its_column(
    width: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pieces stay whole."""
    say_pieces([Piece("name    "), Piece("first.key"), Piece("  "), Piece("role: user")], indent=8)
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("name    first.key")
    assert len(rows) == (2 if width == 20 else 1)
    assert rows[-1].endswith("role: user")


def test_errors_are_wrapped_on_a_terminal() -> None:
    """No word of an error is cut in two."""
    with terminal(dragoman("models", "nobody"), columns=40) as screen:
        assert screen.ended() == 2
        rows = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.raw).strip().split("\r\n")
    assert len(rows) > 2
    assert max(map(len, rows)) <= 40
    assert "dragoman: unknown provider" in " ".join(rows)
