"""Texts made to keep a renderer busy: every token of the grammar repeated, nested, cut off."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

_LENGTH = 60_000
"""Characters of a generated text."""
TOKENS = (
    "$", "$$", "$a", "$$a", "$ ", "$x$", "$x", "$5", "\\$", "\\(", "\\)", "\\[", "\\]",
    "\n\\[", "\n\\]", "\n$$", "\n$$\n", "\\(x\\)", "\\[x\\] ", "$\\frac{1}{2}$ ", "$x^{",
    "${", "$\\a", "*", "**", "*a", "*a ", "**a ", "*a* ", "_", "_a", "_a_ ", "__a ", "***a",
    "*_", "*a_", "~", "~~", "~a~", "~~a~~ ", "`", "``", "`a", "`a`", "`a``b", "```\n",
    "```js\n", "\n```", "~~~\n", "[", "]", "[]", "[a", "[a]", "[a](", "[a](b", "[a](b) ",
    "[a]: b\n", "[a][", "[a][b] ", "[[a]", "![", "![a](", "![a](b) ", "[![a](b)](c) ", "[](",
    "[a](<", '[a](b "', "(", ")", "[x] ", "- [ ] a\n", "<", "<a", "<a ", "<a href=", "<a>",
    "</a>", "<!--", "-->", "<?", "<![CDATA[", "<b\n", "<https://a.example>", "<a@b.example>",
    "<div>\n\n", "<p", "&", "&amp;", "&#", "&#0;", "https://a.example/ ", "http://", "www.",
    "www.a.example ", "a@", "a@b.example ", "https://a.example/(", "://", "> ", ">", ">\n",
    "> a\n\n", "- ", "- a\n", "* a\n", "+ a\n", "1. ", "1. a\n", "1) a\n", "- - ", "- a\n\n",
    "   - a\n", "  ", "\t", "# ", "# a\n", "a\n=\n", "a\n-\n", "---\n", "***\n", "_ _ _\n",
    "|", "|a", "|a|\n|-|\n", "|a|b|\n", "| - ", "\n", "\n\n", "a\n", "a\n\n", "a  \n",
    "a\\\n", "\\", "\\\\", "\\a", "    a\n", "a", "a ", "aB1 ", "ä", "漢", "ع", "ع ", "क्",
    "🙂", "👩\u200d", "👩\u200d👩 ", "\u202e", "a\u202e", "\u061c", "\U000e0041", "a\u0301",
    "\u0301", "\u200d", "\ufe0f", "\u3164", "\x00", "\x1b[", "\r", "\r\n", "\u2028", "{", "}",
    "=", "==", "^", "^^", ":", ":-", "!", "{% ", "{{", "a.", "1.", "...", "--", '"', "'",
    "+", "#", ";", ",",
)  # fmt: skip
"""What the grammar of Markdown, of formulas, and of our table of characters starts with."""
_CODE = (
    "js",
    "python",
    "html",
    "css",
    "json",
    "bash",
    "sql",
    "xml",
    "markdown",
    "c",
    "rust",
    "yaml",
)


def _filled(piece: str, length: int = _LENGTH) -> str:
    return (piece * (length // len(piece) + 1))[:length]


def repeats() -> Iterator[str]:
    """Every token, again and again."""
    yield from map(_filled, TOKENS)


def issued() -> Iterator[str]:
    """The texts of the report."""
    yield "$" * 60_000
    yield "\n\\[" * 99_000


def mixed(count: int, seed: int = 1) -> Iterator[str]:
    """Two to four tokens in a row again and again, nested in each other, or cut off."""
    chance = Random(seed)
    for _ in range(count):
        some = [chance.choice(TOKENS) for _ in range(chance.randint(2, 4))]
        length = chance.choice((5_000, _LENGTH, 290_000))
        match chance.randrange(4):
            case 0:
                yield _filled("".join(some), length)
            case 1:  # opened, and closed in reverse
                half = length // 2
                yield _filled(some[0], half) + some[-1] + _filled(some[1], half)
            case 2:  # cut off
                yield _filled("".join(some), length)[: length - chance.randint(1, 9)] + some[0]
            case _:  # within another block
                around = chance.choice(("> ", "- ", "1. ", "# ", "|", "    ", "> - > 1. "))
                line = _filled("".join(some), chance.choice((80, 2_000))).replace("\n", " ")
                yield _filled(f"{around}{line}\n", length)


def code(seed: int = 1) -> Iterator[str]:
    """Blocks of code in languages that are highlighted."""
    chance = Random(seed)
    for language in _CODE:
        for piece in ("{", '"', "/*", "<a ", "a.", "'''", "\\", "(a", "${", "0", "// ", "#{"):
            length = chance.choice((15_000, 90_000))
            yield f"```{language}\n{_filled(piece, length)}\n```"


def shaped() -> Iterator[str]:
    """Texts that are easy to read and large to show."""
    yield "".join(f"**a** *b* `c` $x_{number}$ " for number in range(9_000))
    yield "\n".join(f"- item {number}\n  - below" for number in range(9_000))
    yield "|a|b|c|\n|-|-|-|\n" + "|**1**|`2`|$3$|\n" * 9_000
    yield "|" + "a|" * 3_000 + "\n|" + "-|" * 3_000 + "\n" + ("|" + "1|" * 3_000 + "\n") * 20
    yield "\n\n".join(f"Paragraph {number} " + "word " * 50 for number in range(1_000))
    yield "\n\n".join(f"# {number}\n\n```js\nlet a = {number};\n```" for number in range(6_000))
    yield "\n\n".join(f"$$\\sum_{{i={number}}}^n \\frac{{i}}{{2}}$$" for number in range(5_000))
    yield "```mermaid\ngraph TD\nA-->B\n```\n" * 2_000
    yield "\n".join(f"```mermaid\ngraph TD\nA-->B{number}\n```" for number in range(2_000))
    yield "$" + "{" * 2_400 + "}" * 2_400 + "$"
    yield "$$" + "\\frac{" * 1_500 + "}{1}" * 1_500 + "$$"
    yield "$$" + "x^" * 2_000 + "x$$"
    yield "$$\\begin{matrix}" + "a & " * 6_000 + "\\end{matrix}$$"
    yield "word " * 58_000
    yield "word " * 900_000
    yield ("x" * 4_000_000)
    yield "a\u202e" * 1_000_000
