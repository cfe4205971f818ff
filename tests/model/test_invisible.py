"""The table of invisible characters, against Unicode's own categories and against real writing."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.invisible import ALWAYS, NEEDED, VISIBLE, VisibleStream, invisible

_LAST = 0x10FFFF
_IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default_Ignorable_Code_Point, from DerivedCoreProperties.txt of Unicode 17."""
_BLANK = (0x2800, 0x2800)
_CATEGORIES = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def _points(*ranges: tuple[int, int]) -> set[int]:
    return {point for first, last in ranges for point in range(first, last + 1)}


def test_the_table_covers_unicode() -> None:
    """Every control, format and ignorable character is in the table; tab and newline are not."""
    hidden = {
        each for each in range(_LAST + 1) if unicodedata.category(chr(each)) in _CATEGORIES
    } - {0x09, 0x0A}
    table, shaped = _points(*ALWAYS, *NEEDED), _points(*VISIBLE)
    assert hidden | _points(*_IGNORABLE, _BLANK) <= table | shaped
    others = table - hidden - _points(*_IGNORABLE, _BLANK)
    assert {unicodedata.category(chr(each)) for each in others} <= {"Cn"}  # of newer versions
    assert not table & shaped


def test_each_is_made_visible_alone() -> None:
    """Alone, and between letters, each character of the table is found, and no other one is."""
    found = {each for each in range(_LAST + 1) if invisible().search(f"a{chr(each)}b")}
    assert found == _points(*ALWAYS, *NEEDED)


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧‍👦", "👨🏽‍❤️‍💋‍👨🏻", "🏳️‍🌈", "🕵️‍♂️", "🐦‍⬛", "1️⃣ #️⃣", "❤️ ☎︎", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🏴󠁧󠁢󠁷󠁬󠁳󠁿",
     "می‌خواهم", "क्‍ष", "ක්‍ය", "স্‌", "ភាសា\u200bខ្មែរ", "⠓⠊⠀⠹⠑", "ᠮᠣᠩᠭᠣᠯ ᠤᠨ᠋", "שָׁלוֹם", "a\tb\r\nc\n"],
)  # fmt: skip
def test_writing_stays_as_it_is(text: str) -> None:
    """Emoji of several, flags, joiners of scripts, word breaks: nothing in them is replaced."""
    assert not invisible().search(text)


@pytest.mark.parametrize(
    "text",
    ["a\u061cb", "x\U000e0041\U000e0042", "🏴\U000e0068\U000e0069\U000e007f",
     "🏴\U000e0067\U000e0062", "a\u200db", "😀\u200d", "ك\u200d\u200d\u200c", "a\ufe0f",
     "😀\ufe0f\ufe0f", "葛\U000e0100", "a\u200bb", "\u2800", "\u3164", "a\rb", "\ud83d", "\u2063"],
)  # fmt: skip
def test_hidden_messages_are_found(text: str) -> None:
    """Where writing needs no such character, it hides something, however it is dressed up."""
    assert invisible().search(text)


_PIECES = st.lists(st.sampled_from(
    [*"a1😀👩🏽♂كक⠓\u20e3\r\n\t🏴\u200d\ufe0f\u200c\u200b\u2800\u202e", "\U000e0067\U000e0062",
     "\U000e0065\U000e006e\U000e0067\U000e007f", "👩‍👧", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]), max_size=8,
)  # fmt: skip


def _streamed(pieces: Iterable[str]) -> str:
    stream = VisibleStream(_shown)
    return "".join(map(stream.feed, pieces)) + stream.flush()


def _shown(char: str) -> str:
    return f"<{ord(char):x}>"


def _whole(text: str) -> str:
    return invisible().sub(lambda found: _shown(found[0]), text).replace("\r\n", "\n")


@pytest.mark.whole
@pytest.mark.parametrize(
    "pieces",
    [
        ["😀", "\u200d", "🏴"],
        ["😀\u200d", "🏴\U000e0067"],
        ["😀\u200d\u200d", "🏴"],
        ["🏴", "\u200d", "🏴"],
    ],
)
def test_a_joiner_before_what_may_become_a_flag_is_judged_with_it(pieces: list[str]) -> None:
    """A black flag waits for its letters; the joiner before it has seen it all the same."""
    assert _streamed(pieces) == _whole("".join(pieces))


@given(_PIECES, st.data())
def test_a_stream_is_shown_as_the_whole_text(made: list[str], data: st.DataObject) -> None:
    """However a text is cut into pieces, what is shown of it is the same."""
    text = "".join(made)
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=6).map(sorted))
    assert _streamed(text[one:other] for one, other in pairwise([0, *cuts, len(text)])) == _whole(
        text
    )
