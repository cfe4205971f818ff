"""How streamed Markdown is split into blocks and printed, and the built-in tools of a chat."""

from __future__ import annotations

import io
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dragoman import ToolCall
from dragoman.agent.harmless_tools import calculate, now
from dragoman.cli.chat.calls import call_line
from dragoman.cli.chat.flow import Flow
from dragoman.cli.chat.prose import Prose, settled
from dragoman.errors import ToolRetry
from dragoman.model.tools import make_call

PIECES = st.lists(
    st.sampled_from(["word ", "two words", "\n", "\n\n", "- item", "1. one", "# Head", "```", "> q",
                     "| a | b |", "|---|---|", "    ", "**b", "*", "<b>", "---"]),
    max_size=30,
)  # fmt: skip


def shown(text: str) -> str:
    """A text as a terminal shows it, without colours."""
    console = Console(file=io.StringIO(), width=60, height=20, no_color=True)
    flow = Flow(console, settled, Prose)
    flow.feed(text)
    flow.close()
    return _printed(console)


def _printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(PIECES)
def test_blocks_and_rest_are_the_whole_text(pieces: list[str]) -> None:
    """Splitting loses and reorders nothing, wherever the text is cut."""
    text = "".join(pieces)
    blocks, rest = settled(text)
    assert "".join("".join([*blocks, rest]).split()) == "".join(text.split())


@given(PIECES)
def test_streamed_words_are_printed_once(pieces: list[str]) -> None:
    """Streaming prints each word as often as printing the whole text, on any screen."""
    text = "".join(pieces)
    console = Console(file=io.StringIO(), width=60, height=8, no_color=True)
    flow = Flow(console, settled, Prose)
    for piece in pieces:
        flow.feed(piece)
    flow.close()
    # Compared with printed text, not with the source: the language of a fence isn't shown, say.
    whole = Console(file=io.StringIO(), width=60, no_color=True)
    whole.print(Prose(text))
    assert _printed(console).count("word") == _printed(whole).count("word")


@pytest.mark.parametrize(
    ("text", "blocks", "rest"),
    [
        ("One.\n\nTwo", [], "One.\n\nTwo"),
        ("One.\n\nTwo\n", ["One."], "Two\n"),
        ("- a\n\n- b\n\nEnd\n", ["- a\n\n- b"], "End\n"),
        ("```\nx\n\ny\n", [], "```\nx\n\ny\n"),
        ("```\nx\n```\nEnd\n", ["```\nx\n```"], "End\n"),
        ("1. a\n\n2", [], "1. a\n\n2"),
        ("Title\n===\n\nText\n", ["Title\n==="], "Text\n"),
    ],
)
def test_unfinished_blocks_are_not_settled(text: str, blocks: list[str], rest: str) -> None:
    """Lists, fences, paragraphs and incomplete lines may still continue."""
    assert settled(text) == (blocks, rest)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one\ntwo", "one\ntwo\n"),
        ("One.\n\n\n\nTwo.", "One.\n\nTwo.\n"),
        ("## Head\n\n- a\n- b", "Head\n\n • a\n • b\n"),
        ("a <b>tag</b>", "a <b>tag</b>\n"),
        ("<div>\nx\n</div>", "<div>\nx\n</div>\n"),
        ("[here](https://x.example)", "here (https://x.example)\n"),
        ("![a bridge](b.png)", "![a bridge](b.png)\n"),
        ("\n\nLate", "Late\n"),
        ("", ""),
    ],
)
def test_rendered_markdown(text: str, expected: str) -> None:
    """Lines, tags, links and images are shown; trailing blanks are not."""
    assert shown(text) == expected


def test_a_tall_block_scrolls_line_by_line() -> None:
    """The part that is redrawn never fills the screen."""
    console = Console(file=io.StringIO(), width=60, height=10, no_color=True)
    flow = Flow(console, settled, Prose)
    flow.feed("```\n")
    for number in range(50):
        flow.feed(f"line {number}\n")
        tail = console.render_lines(flow.tail(), pad=False)
        assert len(tail) <= 10 - 3
    flow.feed("```\n")
    flow.close()
    printed = [line.strip() for line in _printed(console).splitlines()]
    assert [line for line in printed if line] == [f"line {number}" for number in range(50)]


def test_calls_are_shown_short_and_without_control_characters() -> None:
    """Whatever a model writes."""
    assert call_line(ToolCall.create("1", "f", {"a": [1, {"b": "ü"}]})) == 'f(a=[1,{"b":"ü"}])'
    assert call_line(make_call("1", "f", raw="{broken\x1b[2J")) == "f({broken␛[2J)"
    assert len(call_line(ToolCall.create("1", "f", {"a": "x" * 500, "b": "y" * 500}))) < 100


# --- tools


@pytest.mark.parametrize(
    ("expression", "value"),
    [("6 * (7 + 1)", "48"), ("2 ** 10", "1024"), ("-7 // 2", "-4"), ("1 / 4", "0.25"),
     (" 7 % 4 ", "3"), ("2 ** -1", "0.5")],
)  # fmt: skip
def test_arithmetic(expression: str, value: str) -> None:
    """The calculator computes as Python does."""
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    ["", "1 +", "x", "f(1)", "'a' * 9", "9 ** 9 ** 9", "2 ** 100000", "(-8) ** 0.5", "1 / 0",
     "True + 1", "1 if 1 else 2", "1.0e308 * 10 ** 400", "(" * 150, "1 < 2", "~1", "9" * 201],
)  # fmt: skip
def test_invalid_arithmetic_is_rejected(expression: str) -> None:
    """Nothing is executed, nothing takes long, and the model gets an explanation."""
    with pytest.raises(ToolRetry):
        calculate(expression)


def test_the_time() -> None:
    """The time tool takes an optional time zone."""
    assert str(datetime.now().astimezone().year) in now()
    assert "(UTC)" in now("UTC")
    for zone in ("Nowhere/Land", "../etc/passwd", "\x00"):
        with pytest.raises(ToolRetry, match="time zone"):
            now(zone)
