"""Renders Markdown on a terminal, and splits growing text into blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown

# HTML is off, so that tags are shown literally; rich would drop them.
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("strikethrough").enable("table")


class _PlainHeading(Heading):
    """A left-aligned heading without a frame."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text = self.text.copy()
        text.justify = "left"
        yield text


class Prose(Markdown):
    """Markdown with hard line breaks and visible link targets."""

    elements = {**Markdown.elements, "heading_open": _PlainHeading}  # noqa: RUF012 - as its parent

    def __init__(self, text: str) -> None:
        super().__init__("", code_theme="ansi_dark", hyperlinks=False)
        self.markup = text
        self.parsed = [_kept(token) for token in _PARSER.parse(text)]


def _kept(token: Token) -> Token:
    """The token with its line breaks and images, which rich would show as spaces and icons."""
    if token.children:
        token.children = [*map(_shown, token.children)]
    return token


def _shown(token: Token) -> Token:
    if token.type == "softbreak":
        return token.copy(type="hardbreak")
    if token.type == "image":
        picture = f"![{token.content}]({token.attrs.get('src', '')})"
        return Token("text", "", 0, content=picture)
    return token


def settled(text: str) -> tuple[list[str], str]:
    r"""The complete blocks of a growing text, and the rest.

    The last block may still grow, and its type is known only when its first line is complete.

    >>> settled("One.\n\nTwo,\nand")
    (['One.'], 'Two,\nand')
    """
    starts = [*_starts(text)]
    while starts and "\n" not in _from_line(text, starts[-1]):
        starts.pop()
    if len(starts) < 2:  # noqa: PLR2004 - one that may go on, and one before it
        return [], text
    lines = text.split("\n")
    blocks = ["\n".join(lines[start:end]).rstrip() for start, end in pairwise(starts)]
    return blocks, "\n".join(lines[starts[-1] :])


def _starts(text: str) -> Iterator[int]:
    """The line numbers at which blocks begin."""
    found: Iterable[Token] = _PARSER.parse(text)
    for token in found:
        if token.level == 0 and token.map is not None and token.nesting >= 0:
            yield token.map[0]


def _from_line(text: str, line: int) -> str:
    return text.split("\n", line)[line]
