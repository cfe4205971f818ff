"""Items on a terminal: a line of facts each, then a title and a text, fitted to its width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from dragoman.cli.screen import harmless_line

_MAX_FACT_CELLS = 30  # maximum cells per fact
_MIN_TEXT_CELLS = 24  # minimum cells for the text
_GAP = "  "


class Card(NamedTuple):
    """One item: its facts, title and text."""

    facts: tuple[str, ...]
    name: str
    text: str


def print_cards(cards: Sequence[Card]) -> None:
    """Print to standard output, with control characters made visible."""
    console = Console(highlight=False)
    clean = [Card(tuple(map(_line, card.facts)), _line(card.name), _line(card.text))
             for card in cards]  # fmt: skip
    widths = [min(max(map(cell_len, column)), _MAX_FACT_CELLS)
              for column in zip(*(card.facts for card in clean), strict=True)]  # fmt: skip
    fits = sum(widths) + len(_GAP) * (len(widths) - 1) <= console.width
    for card in clean:
        facts = [_padded(fact, width) for fact, width in zip(card.facts, widths, strict=True)]
        lines = [_GAP.join(facts)] if fits else _packed(card.facts, console.width)
        for line in lines:
            _print(console, line.rstrip(), "bold" if line is lines[0] else "")
        _print_text(console, card)


def _line(text: str) -> str:
    return harmless_line(text.strip())


def _padded(cell: str, width: int) -> str:
    text = Text(cell)
    text.truncate(width, overflow="ellipsis", pad=True)
    return text.plain


def _packed(facts: Sequence[str], width: int) -> list[str]:
    """The facts, wrapped onto as many lines as needed."""
    lines: list[str] = []
    for fact in filter(None, facts):
        joined = f"{lines[-1]}{_GAP}{fact}" if lines else fact
        if lines and cell_len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(f"{_GAP}{fact}" if lines else fact)
    return lines


def _print_text(console: Console, card: Card) -> None:
    for line in _texts(card, console.width):
        _print(console, f"{_GAP}{line}", "")


def _texts(card: Card, width: int) -> Iterator[str]:
    if cell_len(card.name) + 2 * len(_GAP) + min(_MIN_TEXT_CELLS, cell_len(card.text)) <= width:
        yield f"{card.name}{_GAP}{card.text}"
        return
    yield card.name
    if card.text:
        yield card.text


def _print(console: Console, line: str, style: str) -> None:
    console.print(Text(line, style), overflow="ellipsis", no_wrap=True)
