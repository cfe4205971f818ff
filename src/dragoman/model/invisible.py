"""Characters that hide, reorder or control text: one table for the terminal and the web page.

`invisible()` matches them one at a time. A character that writing needs is not matched where it is
needed: joiners in Arabic, Persian, Indic and other scripts, and those in emoji; flags of the parts
of a country; the emoji style; word breaks of scripts without spaces; the blank of Braille.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache

Ranges = Sequence[tuple[int, int]]

ALWAYS: Ranges = (
    (0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F),  # controls, but tab and line ends
    (0xAD, 0xAD), (0x034F, 0x034F),  # soft hyphen, grapheme joiner
    (0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069),  # direction
    (0x115F, 0x1160), (0x3164, 0x3164), (0xFFA0, 0xFFA0),  # fillers of Hangul
    (0x17B4, 0x17B5),  # vowels of Khmer that are not written
    (0x2028, 0x2029),  # line and paragraph separators
    (0x2060, 0x2065), (0x206A, 0x206F), (0xFEFF, 0xFEFF),  # word joiner, operators, byte order
    (0xD800, 0xDFFF),  # lone surrogates
    (0xFE00, 0xFE0D), (0xE0080, 0xE0FFF),  # variation selectors; plane 14, reserved for the like
    (0xFFF0, 0xFFFB),  # unassigned, and annotations
    (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),  # layout of signs and music
)  # fmt: skip
"""Never needed to read a text."""
NEEDED: Ranges = (
    (0x0D, 0x0D), (0x180B, 0x180F), (0x200B, 0x200D), (0x2800, 0x2800), (0xFE0E, 0xFE0F),
    (0xE0000, 0xE007F),
)  # fmt: skip
"""Invisible too, but needed in some places."""
VISIBLE: Ranges = (
    (0x0600, 0x0605), (0x06DD, 0x06DD), (0x070F, 0x070F), (0x0890, 0x0891), (0x08E2, 0x08E2),
    (0x110BD, 0x110BD), (0x110CD, 0x110CD),
)  # fmt: skip
"""Format characters of Unicode with a shape: signs around numbers."""

_JOINED: Ranges = (  # scripts whose letters join, or whose clusters joiners form
    (0x0620, 0x06DC), (0x06DE, 0x06FF), (0x0710, 0x07FF), (0x0840, 0x085B), (0x0860, 0x088F),
    (0x0898, 0x08E1), (0x08E3, 0x0DFF), (0x0F00, 0x109F), (0x1700, 0x17B3), (0x17B6, 0x17DD),
    (0x1820, 0x18AA), (0x1900, 0x1CFF), (0xA800, 0xA8FF), (0xA930, 0xAADF), (0xAAE0, 0xABFF),
    (0xFB50, 0xFDFF), (0xFE70, 0xFEFC), (0x10A00, 0x10D3F), (0x10F00, 0x110BC),
    (0x110BE, 0x110CC), (0x110CE, 0x11FFF), (0x1E900, 0x1E95F),
)  # fmt: skip
_UNSPACED: Ranges = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17B3), (0x17B6, 0x17DD))
_PICTURES: Ranges = (
    (0xA9, 0xA9), (0xAE, 0xAE), (0x203C, 0x203C), (0x2049, 0x2049), (0x2122, 0x2122),
    (0x2139, 0x2139), (0x2190, 0x21FF), (0x2300, 0x23FF), (0x24C2, 0x24C2), (0x25A0, 0x27BF),
    (0x2934, 0x2935), (0x2B00, 0x2BFF), (0x3030, 0x3030), (0x303D, 0x303D), (0x3297, 0x3297),
    (0x3299, 0x3299), (0x1F000, 0x1FAFF),
)  # fmt: skip
_BRAILLE: Ranges = ((0x2801, 0x28FF),)
_MONGOLIAN: Ranges = ((0x1820, 0x18AA),)
_KEYS: Ranges = ((0x23, 0x23), (0x2A, 0x2A), (0x30, 0x39))  # of keycaps: # * 0-9
_FLAG, _TAGS, _TAGS_END = 0x1F3F4, 0xE0000, 0xE007F
_REGIONS = ("gbeng", "gbsct", "gbwls")  # others show a black flag only, and hide their letters


def invisible_pattern(char: Callable[[int], str]) -> str:
    """The regular expression; `char` writes a code point. Python and JavaScript both read it."""

    def any_of(*ranges: Ranges) -> str:
        pairs = (pair for each in ranges for pair in each)
        return "[" + "".join(f"{char(one)}-{char(other)}" for one, other in pairs) + "]"

    def text(points: Sequence[int]) -> str:
        return "".join(map(char, points))

    styles, joiner = any_of(((0xFE0E, 0xFE0F),)), char(0x200D)
    selectors = any_of(((0x180B, 0x180F),))
    flags = ([_FLAG, *(_TAGS + ord(letter) for letter in each), _TAGS_END] for each in _REGIONS)
    in_flag = "|".join(
        f"(?<={text(flag[: at + 1])}){text(flag[at + 1 :])}"
        for flag in flags
        for at in range(1, len(flag))
    )
    pictures, joined, unspaced = any_of(_PICTURES), any_of(_JOINED), any_of(_UNSPACED)
    drawn = any_of(_PICTURES, ((0xFE0F, 0xFE0F),))
    braille, blank = any_of(_BRAILLE), char(0x2800)
    return "|".join((
        any_of(ALWAYS),
        rf"{char(0x0D)}(?!{char(0x0A)})",
        rf"{char(0x200C)}(?<!{joined}{char(0x200C)})",
        rf"{joiner}(?<!{joined}{joiner})(?!(?<={drawn}{joiner}){pictures})",
        rf"{char(0x200B)}(?!(?<={unspaced}{char(0x200B)}){unspaced})",
        rf"{styles}(?<!{pictures}{styles})(?!(?<={any_of(_KEYS)}{styles}){char(0x20E3)})",
        rf"{selectors}(?<!{any_of(_MONGOLIAN)}{selectors})",
        rf"{blank}(?<!{braille}{blank})(?!{braille})",
        rf"{any_of(((_TAGS, _TAGS_END),))}(?!{in_flag})",
    ))  # fmt: skip


def _in_python(code: int) -> str:
    return f"\\U{code:08x}"


def _in_javascript(code: int) -> str:
    return f"\\u{{{code:x}}}"


@cache  # made when it is needed: that takes 30 ms
def invisible() -> re.Pattern[str]:
    """Matches one character that hides, reorders or controls text."""
    return re.compile(invisible_pattern(_in_python))


def made_visible(text: str, show: Callable[[str], str]) -> str:
    """The text with what `show` gives for each such character."""
    return _pattern_for(text).sub(lambda found: show(found[0]), text)


def _pattern_for(text: str) -> re.Pattern[str]:
    return _CONTROLS if text.isascii() else invisible()


def invisible_module() -> str:
    """The same as a module of JavaScript, for the web page."""
    source = invisible_pattern(_in_javascript)
    note = (
        "// Generated from dragoman/model/invisible.py: one character that hides or reorders text."
    )
    return f"{note}\nexport const INVISIBLE = /{source}/gu;\n"


class VisibleStream:
    """Makes invisible characters of a streamed text visible, where a sequence may come in pieces.

    What might be the beginning of a sequence waits for the next piece, or for `flush`.
    """

    def __init__(self, show: Callable[[str], str]) -> None:
        self._show = show
        self._before = ""  # the last characters, already given
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown now."""
        text = self._held + piece
        held = _BEGUN.search(text)
        return self._given(text, held.start() if held else len(text))

    def flush(self) -> str:
        """The rest."""
        return self._given(self._held, len(self._held))

    def _given(self, text: str, until: int) -> str:
        whole, start = self._before + text, len(self._before)
        end = start + until
        pieces = list(self._pieces(whole, start, end))
        self._held = text[until:]
        self._before = whole[max(0, end - _CONTEXT) : end]
        return "".join(pieces).replace("\r\n", "\n")

    def _pieces(self, whole: str, at: int, end: int) -> Iterator[str]:
        for found in _pattern_for(whole).finditer(whole, at):  # looks behind `at`, ahead of `end`
            if found.start() >= end:
                break
            yield whole[at : found.start()]
            yield self._show(found[0])
            at = found.end()
        yield whole[at:end]


_IN_ASCII = "".join(
    chr(code) for code in range(128) if any(one <= code <= other for one, other in ALWAYS)
)
_CONTROLS = re.compile(f"[{_IN_ASCII}]|\r(?!\n)")
_CONTEXT = 2  # characters that decide about the next one; those of a flag are held together
_BEGUN = re.compile(
    "(?:\r|[\u200b-\u200d\u2800\ufe0e\ufe0f]{1,8}|\U0001f3f4[\U000e0020-\U000e007e]{0,5})\\Z"
)
