"""Positions of keys and values in TOML, against tomllib."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.config.positions import Path, Positions, _unquoted
from tests.gateway.config.toml_texts import documents

EXAMPLE = """\
# a comment = 1
title = "x" # another
[server]
host.'the "first"' = 1
"por\\u0074" = { low = 1, "high" = [2, { deep = 3 }] }
long = \"\"\"
[not.a.table]
key = 1
\"\"\"

[[routes]]
model = "*"
[routes.defaults]
max_tokens = 1
[[routes]]
to = [
  "lab", # ]
  {to = "x"},
]
"""


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    """Every path in a parsed document."""
    if path:
        yield path
    named = list(value.items()) if isinstance(value, dict) else []
    for key, each in list(enumerate(value)) if isinstance(value, list) else named:
        yield from paths(each, (*path, key))


@pytest.mark.parametrize(
    ("path", "line", "column"),
    [
        (("title",), 2, 1),
        (("server",), 3, 2),
        (("server", "host"), 4, 1),
        (("server", "host", 'the "first"'), 4, 6),
        (("server", "port"), 5, 1),
        (("server", "port", "low"), 5, 17),
        (("server", "port", "high", 1, "deep"), 5, 41),
        (("server", "long"), 6, 1),
        (("routes", 0), 11, 3),
        (("routes", 0, "model"), 12, 1),
        (("routes", 0, "defaults", "max_tokens"), 14, 1),
        (("routes", 1), 15, 3),
        (("routes", 1, "to", 1, "to"), 18, 4),
    ],
)
def test_keys_have_lines_and_columns(path: Path, line: int, column: int) -> None:
    """Of tables, arrays of tables, inline tables, dotted and quoted keys."""
    assert Positions(EXAMPLE).place_of(path, at_key=True) == (line, column)


def test_values_have_their_own_positions() -> None:
    """Array items, too; otherwise the position is that of the container."""
    positions = Positions(EXAMPLE)
    assert positions.place_of(("title",)) == (2, 9)
    assert positions.place_of(("routes", 1, "to", 0)) == (17, 3)
    assert positions.place_of(("routes", 1, "missing")) == (15, 3)
    assert positions.place_of(("nothing",)) == (1, 1)


@given(documents())
def test_every_key_is_at_its_position(text: str) -> None:
    """The text at a key's position is that key, and every value has a position."""
    text = text.replace("\r\n", "\n")
    positions, data = Positions(text), tomllib.loads(text)
    assert {*positions.keys, *positions.values} == set(paths(data))
    for path, offset in positions.keys.items():
        if isinstance(path[-1], str):
            other = Positions(text)
            other._at = offset
            assert other._key_part() == (path[-1], offset)


@given(documents())
def test_every_value_is_at_its_position(text: str) -> None:
    """The text at a value's position, parsed alone, is that value."""
    text = text.replace("\r\n", "\n")
    positions, data = Positions(text), tomllib.loads(text)
    for path, offset in positions.values.items():
        value: Any = data
        for key in path:
            value = value[key]
        other = Positions(text)
        other._at, other.values = offset, {}
        other._value(())
        written = tomllib.loads(f"value = {text[offset : other._at]}")["value"]
        assert repr(written) == repr(value)  # by text: nan differs from itself


@given(st.text("[]{}=.,#\"'\\ \nab1", max_size=60))
def test_invalid_toml_has_positions_as_far_as_possible(text: str) -> None:
    """Nothing is raised: tomllib reports the error; what it accepts is found completely."""
    positions = Positions(text)
    try:
        data = tomllib.loads(text)
    except ValueError:
        return
    assert {*positions.keys, *positions.values} == set(paths(data))


@pytest.mark.parametrize(
    "text",
    [
        "a" + ".a" * 200_000 + " = 1",
        "[" + "a." * 200_000 + "a]",
        "a = " + "[" * 200_000,
        "a = " + "{a=" * 200_000,
        "a = " + "[" * 33 + "1" + "]" * 33,
    ],
)
def test_deep_nesting_is_rejected_at_once(text: str) -> None:
    """Before tomllib takes minutes, or overflows the stack."""
    assert Positions(text).too_deep is not None


@pytest.mark.parametrize(
    "text",
    [
        'a = """' + '""\\' * 300_000,
        'a = "' + "\\" * 1_000_000,
        "a = '''" + "''a" * 300_000,
        "a = [" + "1," * 300_000,
        "a = [" + "# x\n" * 200_000,
        "\n# x" * 200_000,
        "a = {" + "\n \t" * 300_000,
        "[[a]]\n" * 100_000,
        "a" * 1_000_000,
        "'" + "a" * 1_000_000,
    ],
)
def test_long_texts_take_linear_time(text: str) -> None:
    """A megabyte of anything is fast; quadratic time would be hours."""
    assert Positions(text).line_and_column(0) == (1, 1)


def test_quoted_keys_are_read_as_tomllib_reads_them() -> None:
    """Escapes included."""
    assert _unquoted('"a\\u0062\\n"') == "ab\n"
    assert _unquoted("'a\\u0062'") == "a\\u0062"
