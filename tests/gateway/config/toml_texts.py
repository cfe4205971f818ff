"""Generated TOML: documents with everything the language has, and how they are written."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import strategies as st

BARE = st.text("abc-_1", min_size=1, max_size=4)
_LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="'"), max_size=6)


def quoted(text: str) -> str:
    """A basic string."""
    escaped = "".join(_escaped(each) for each in text)
    return f'"{escaped}"'


def _escaped(character: str) -> str:
    is_plain = character.isprintable() and character not in '"\\'
    return character if is_plain else f"\\U{ord(character):08X}"


KEYS = st.one_of(BARE, _LINE.map(quoted), _LINE.map(lambda text: f"'{text}'"))
BLANKS = st.sampled_from(["", " ", "\t", "  "])
NEWLINES = st.sampled_from(["\n", "\r\n", " # a ] comment = { 'x' \"\n", "\n\n  "])
LONG = st.sampled_from(
    [
        '"""\n[no.table]\nkey = 1 # none\n"""',
        '"""a "quoted" \\""" text\\\\"""',
        '"""two""""',
        '"""three"""""',
        "'''\n[[no]]\n'quoted' ''twice'' \\'''",
        "'''end'''''",
        '""""""',
        "''''''",
    ]
)
SCALARS = st.one_of(
    st.integers(-(10**6), 10**6).map(str),
    st.sampled_from(["true", "1.5e3", "inf", "nan", "0xff", "1979-05-27T07:32:00Z", "07:32:00"]),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8).map(quoted),
    _LINE.map(lambda text: f"'{text}'"),
    LONG,
)


@st.composite
def dotted(draw: st.DrawFn) -> str:
    """A key of one to three parts, with blanks around its dots."""
    parts = draw(st.lists(KEYS, min_size=1, max_size=3))
    return f"{draw(BLANKS)}.{draw(BLANKS)}".join(parts)


def _array(draw: st.DrawFn, items: list[str]) -> str:
    gap = draw(st.one_of(BLANKS, NEWLINES))
    comma = draw(st.sampled_from(["", ","])) if items else ""
    return f"[{gap}{f'{gap},{gap}'.join(items)}{gap}{comma}{gap}]"


@st.composite
def pairs(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """`key = value`, without the end of the line."""
    return f"{draw(dotted())}{draw(BLANKS)}={draw(BLANKS)}{draw(values)}"


@st.composite
def _nested(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    if draw(st.booleans()):
        return _array(draw, draw(st.lists(values, max_size=3)))
    return "{ " + ", ".join(draw(st.lists(pairs(values), max_size=3))) + " }"


VALUES = st.recursive(SCALARS, _nested, max_leaves=5)


@st.composite
def headers(draw: st.DrawFn) -> str:
    """`[table]` or `[[array]]`."""
    key, gap = draw(dotted()), draw(BLANKS)
    return draw(st.sampled_from([f"[{gap}{key}{gap}]", f"[[{gap}{key}{gap}]]"]))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A document; statements that TOML does not allow after the others are left out."""
    text = ""
    for statement in draw(st.lists(st.one_of(pairs(VALUES), headers()), max_size=12)):
        longer = f"{text}{draw(BLANKS)}{statement}{draw(NEWLINES)}"
        if parsed(longer) is not None:
            text = longer
    return text


def parsed(text: str) -> dict[str, Any] | None:
    """What a document says; None where it is not TOML."""
    try:
        return tomllib.loads(text)
    except ValueError:
        return None
