"""Conversion between values and JSON text."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError, InvalidInputError
from dragoman.model.frozen import (
    MAX_DEPTH,
    MAX_INTEGER_BITS,
    FrozenDict,
    FrozenList,
    freeze,
    freeze_mapping,
    thaw,
)
from dragoman.model.jsontext import (
    check_readable,
    convert,
    dumps,
    dumps_sorted,
    indented,
    loads,
    loads_as,
)
from tests.model.anything import json_values, texts


def nested(depth: int) -> dict[str, Any]:
    """An object in an object in an object."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


@given(json_values())
def test_what_is_written_can_be_read(value: Any) -> None:
    """Any JSON value reads back unchanged, including lone surrogates and large integers."""
    assert loads(dumps(value)) == value


@given(json_values())
def test_text_bytes_and_their_likes_read_the_same(value: Any) -> None:
    """JSON may be given as any kind of bytes, or as text."""
    raw = dumps(value)
    for given_as in (raw, bytearray(raw), memoryview(raw), raw.decode("utf-8")):
        assert loads(given_as) == value


@given(texts())
def test_the_output_is_standard_json(text: str) -> None:
    """The standard library reads the same values from it."""
    assert json.loads(dumps({text: [text]})) == {text: [text]}


HALVES = [chr(0xD800), chr(0xDBFF), chr(0xDC00), chr(0xDFFF), "a\ud800b", "\udc00\ud800"]


@pytest.mark.parametrize("half", HALVES, ids=ascii)
@pytest.mark.parametrize("place", ["value", "key", "inner"])
def test_lone_surrogates_survive(half: str, place: str) -> None:
    """A lone surrogate is written as an escape and read back, in any position."""
    value = {"value": half, "key": {half: 1}, "inner": [{"a": [half]}]}[place]
    raw = dumps(value)
    assert raw.isascii()
    assert loads(raw) == value
    assert loads(raw.decode("ascii")) == value


@pytest.mark.parametrize("half", ["", "\ud800"])
def test_equal_values_are_written_alike(half: str) -> None:
    """With `dumps_sorted`, in whatever order their keys came, with and without half characters."""
    one = {"b": [half, {"d": 1, "c": half}], "a": None, half: 2}
    other = {half: 2, "a": None, "b": [half, {"c": half, "d": 1}]}
    assert dumps_sorted(one) == dumps_sorted(other)
    assert loads(dumps_sorted(one)) == one
    assert dumps(one) != dumps(other)


def test_half_characters_may_stand_in_the_text_itself() -> None:
    """JSON as a `str` may hold a lone surrogate unescaped."""
    assert loads('{"a":"\ud800"}') == {"a": "\ud800"}


def test_two_halves_make_a_character() -> None:
    """A high and a low surrogate side by side are read as the character that they are."""
    assert loads(dumps("\ud83d\ude00")) == "\N{GRINNING FACE}"


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "[1, 1e999]"]
)
@pytest.mark.parametrize("half", ["", '"\\ud800", '])
def test_numbers_that_no_double_holds_are_refused(number: str, half: str) -> None:
    """What Python would turn into infinity is an error, on the fast and on the slow path."""
    with pytest.raises(InvalidInputError):
        loads(f"[{half}{number}]")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_infinities_next_to_half_characters_are_not_written(value: float) -> None:
    """The slow path rejects what JSON does not support, with our own error."""
    with pytest.raises(InvalidInputError) as caught:
        dumps(["\ud800", value])
    assert caught.value.__context__ is None


def test_large_integers_survive() -> None:
    """Integers are exact far beyond 64 bits, either sign, up to Python's own limit."""
    for number in (2**63, 2**64, 2**200, -(2**200), 10**4299, -(10**4299)):
        assert loads(dumps(number)) == number


def test_integers_of_5000_digits_are_refused() -> None:
    """Integers that Python won't print or parse are a clear error both ways."""
    with pytest.raises(InvalidInputError, match="can't be encoded"):
        dumps(10**5000)
    for text in ("9" * 5000, "[" + "9" * 5000 + ', "\\ud800"]'):
        with pytest.raises(InvalidInputError, match="out of range"):
            loads(text)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"{", b"[1,]", b"{'a':1}", b'"\x00"', b"\xff", b'"\xff"', b'"\xed\xa0\x80"',
        b"nul", b"1 2", b'{"a":1,}', b'"\\x"', b'"\\ud8"', b"\x00", "", "\ufeff", b"\xef\xbb\xbf",
        b"\xff\xfe1\x00",
    ],
)  # fmt: skip
def test_malformed_text_is_refused(raw: bytes | str) -> None:
    """Invalid JSON and invalid UTF-8 raise our own error, without a cause or context."""
    with pytest.raises(InvalidInputError) as caught:
        loads(raw)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("raw", [None, 5, 1.5, {}, [], object(), ["{}"], {"a": 1}])
def test_values_other_than_text_are_rejected(raw: Any) -> None:
    """The error names the type."""
    with pytest.raises(InvalidInputError, match=f"bytes or str, not {type(raw).__name__}"):
        loads(raw)


def test_a_byte_order_mark_is_skipped() -> None:
    """Files from Windows begin with one."""
    assert loads(b'\xef\xbb\xbf{"a":1}') == {"a": 1}


def test_nul_survives() -> None:
    """The NUL character is text like any other."""
    assert loads(dumps({"\x00": "a\x00b"})) == {"\x00": "a\x00b"}


def test_the_last_of_equal_keys_wins() -> None:
    """As everywhere, and on the slow way as well."""
    assert loads(b'{"a":1,"a":2}') == {"a": 2}
    assert loads(b'{"a":"\\ud800","a":2}') == {"a": 2}


@given(st.binary(max_size=40) | texts() | st.text('[]{}":,\\u0d8e1-+.ntf ', max_size=30))
def test_random_input_reads_or_is_refused(raw: bytes | str) -> None:
    """Nothing but our own error comes out, whatever goes in."""
    try:
        value = loads(raw)
    except DragomanError as error:
        assert error.__context__ is None  # noqa: PT017 - it need not be refused
    else:
        assert loads(dumps(value)) == value


@pytest.mark.parametrize("value", [object(), {1, object()}, [object], {(1, 2): 3}, 1j])
def test_values_without_a_json_form_are_rejected(value: Any) -> None:
    """Also beside lone surrogates."""
    for given_as in (value, ["\ud800", value]):
        with pytest.raises(InvalidInputError) as caught:
            dumps(given_as)
        assert caught.value.__context__ is None


def test_deep_values_are_not_written() -> None:
    """Nesting beyond Python's stack is our own error, also for values that contain themselves."""
    endless: list[Any] = []
    endless.append(endless)
    with_half: list[Any] = ["\ud800"]
    with_half.append(with_half)
    for value in (endless, with_half):
        with pytest.raises(InvalidInputError) as caught:
            dumps(value)
        assert caught.value.__context__ is None


@pytest.mark.parametrize("depth", [1_500, 100_000, 2_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":', '["\\ud800",'])
def test_deep_text_is_refused(depth: int, opening: str) -> None:
    """Nesting without end neither crashes the interpreter nor gets through."""
    closing = "]" if opening[0] == "[" else "1}"
    for raw in (opening * depth, opening * depth + closing * depth):
        try:
            value = loads(raw)
        except InvalidInputError as error:
            assert error.__context__ is None  # noqa: PT017 - it need not be refused
        else:  # newer Pythons have more of a stack
            with pytest.raises(InvalidInputError, match="nested deeper"):
                freeze(value)


def test_a_thread_survives_deep_text() -> None:
    """A fresh interpreter, in a thread with the usual stack, refuses deep text and lives on.

    With stacks of less than 4 MB, Python 3.13's own parser and msgspec's overrun them.
    """
    code = (
        "import threading; from dragoman.errors import InvalidInputError\n"
        "from dragoman import Message, ToolCall\n"
        'head = \'{"dragoman":1,"kind":"Message","value":{"role":"user","metadata":\'\n'
        "done = []\n"
        "def refused(make, *given):\n"
        "    try: make(*given)\n"
        "    except InvalidInputError: done.append(1)\n"
        "def work():\n"
        "    for opening in ('{\"a\":', '{\"a\":[', '{\"\\\\ud800\":'):\n"
        "        for depth in (900, 5000, 10**6):\n"
        "            refused(Message.from_json, head + opening * depth)\n"
        "            refused(ToolCall.create, '1', 'f', opening * depth)\n"
        "threading.stack_size(8 * 1024 * 1024)\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
        "print(len(done))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "18")


# --- as types


class Point(msgspec.Struct):
    """Something to read into."""

    x: int
    label: str = ""


def test_errors_name_the_place_and_the_types_only() -> None:
    """A value of the wrong type is reported by its path, never by its content."""
    decoder = msgspec.json.Decoder(Point)
    with pytest.raises(InvalidInputError, match=r"Expected `int`, got `str` - at `\$\.x`"):
        loads_as(b'{"x":"hush"}', decoder)
    with pytest.raises(InvalidInputError, match=r"Expected `int`, got `str` - at `\$\.x`"):
        loads_as(b'{"x":"hush","label":"\\ud800"}', decoder)
    with pytest.raises(InvalidInputError, match="missing required field `x`"):
        loads_as(b"{}", decoder)


def test_half_characters_survive_into_types() -> None:
    """The slow way ends in the same types as the quick one."""
    point = loads_as(b'{"x":1,"label":"\\ud800"}', msgspec.json.Decoder(Point))
    assert (point.x, point.label) == (1, "\ud800")


def test_written_text_is_checked_against_its_type() -> None:
    """What its reader would refuse is refused before it is stored."""
    check_readable(b'{"x":1}', msgspec.json.Decoder(Point))
    with pytest.raises(InvalidInputError, match="can't be stored: Expected `int`, got `str`"):
        check_readable(b'{"x":"hush"}', msgspec.json.Decoder(Point))


@dataclass
class Line:
    """Somebody else's type."""

    length: int


@pytest.mark.parametrize("value", [{"length": "hush"}, {}, [], None, "hush", {"length": 1.5}])
def test_conversion_errors_contain_no_values(value: Any) -> None:
    """A value that does not match a type is rejected without being shown."""
    with pytest.raises(InvalidInputError) as caught:
        convert(value, Line)
    assert "hush" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("kind", [5, "int", object(), [int], ...])
def test_conversion_to_an_invalid_type_raises(kind: Any) -> None:
    """It is the caller's mistake, and the error is our own."""
    with pytest.raises(InvalidInputError):
        convert(1, kind)


# --- frozen values


@given(json_values())
def test_frozen_values_are_equal_and_thaw(value: Any) -> None:
    """Freezing changes nothing but that nothing can change; a thawed copy is ordinary."""
    frozen = freeze(value)
    assert frozen == value
    assert hash(frozen) == hash(freeze(value))
    assert freeze(frozen) is frozen
    thawed = thaw(frozen)
    assert thawed == value
    assert type(thawed) is type(value)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda d: d.update(a=1), lambda d: d.__setitem__("a", 1), lambda d: d.pop("a"),
        lambda d: d.clear(), lambda d: d.setdefault("b", 1), lambda d: d.popitem(),
        lambda d: d.__delitem__("a"), lambda d: d.__ior__({"b": 1}),
        lambda d: d["a"].append(1), lambda d: d["a"].extend([1]), lambda d: d["a"].sort(),
        lambda d: d["a"].__setitem__(0, 1), lambda d: d["a"].__delitem__(0),
        lambda d: d["a"].insert(0, 1), lambda d: d["a"].pop(), lambda d: d["a"].remove(2),
        lambda d: d["a"].reverse(), lambda d: d["a"].clear(), lambda d: d["a"].__iadd__([1]),
        lambda d: d["a"].__imul__(2),
    ],
)  # fmt: skip
def test_frozen_values_refuse_every_change(attempt: Any) -> None:
    """All that changes a dict or a list in place is refused, at any depth."""
    frozen = freeze({"a": [2, 1]})
    with pytest.raises(TypeError, match="is immutable"):
        attempt(frozen)
    assert frozen == {"a": [2, 1]}


def test_freezing_copies() -> None:
    """Changing the original later changes nothing."""
    original: dict[str, Any] = {"a": [1, {"b": 2}]}
    frozen = freeze(original)
    original["a"].append(3)
    assert frozen == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    "value",
    [float("nan"), [float("inf")], {"a": {"b": -float("inf")}}, object(), b"x", {1}, {1: 2},
     {None: 1}, [1j], {"a": object}, [2**MAX_INTEGER_BITS], [-(10**5000)]],
)  # fmt: skip
def test_what_json_cannot_carry_is_not_frozen(value: Any) -> None:
    """NaN, infinities, endless integers, odd keys and odd types are refused when they come in."""
    with pytest.raises(InvalidInputError):
        freeze(value)


def test_subclasses_become_plain() -> None:
    """Enums and other relatives of str, int and float are stored as what they stand for."""

    class Name(str):
        __slots__ = ()

    class Count(int):
        pass

    class Share(float):
        pass

    frozen = freeze({Name("a"): [Name("b"), Count(1), Share(0.5)]})
    assert [type(item) for item in frozen["a"]] == [str, int, float]
    assert {type(key) for key in frozen} == {str}


def test_the_limit_of_depth() -> None:
    """So deep and no deeper; a value that contains itself is too deep as well."""
    assert freeze(nested(MAX_DEPTH + 1)) == nested(MAX_DEPTH + 1)
    endless: dict[str, Any] = {}
    endless["a"] = [endless]
    for value in (nested(MAX_DEPTH + 2), nested(100_000), endless):
        with pytest.raises(InvalidInputError, match="is nested deeper than 100 levels"):
            freeze(value)


def test_frozen_values_in_frozen_values_count() -> None:
    """Wrapping what is frozen already gets no deeper than wrapping what is not."""
    half = freeze(nested(MAX_DEPTH // 2))
    assert freeze({"a": {"b": [half]}})["a"]["b"][0] is half
    deep = freeze(nested(MAX_DEPTH + 1))
    for value in ([deep], {"a": deep}, (1, [deep])):
        with pytest.raises(InvalidInputError, match="nested deeper"):
            freeze(value)


def test_wrapping_the_same_twice_stays_cheap() -> None:
    """A value that holds another twice, fifty times over, is measured in no time."""
    value: Any = freeze({"a": 1})
    for _ in range(MAX_DEPTH // 2):
        value = freeze([{"left": value, "right": value}])
    with pytest.raises(InvalidInputError, match="nested deeper"):
        freeze([value, value])


def test_a_mapping_is_demanded_where_one_belongs() -> None:
    """None is an empty mapping; anything else but a mapping is refused by its type."""
    assert freeze_mapping(None) == {}
    odd: list[Any] = [[], "hush", 5]
    for value in odd:
        with pytest.raises(InvalidInputError, match=f"not {type(value).__name__}"):
            freeze_mapping(value)


def test_frozen_types_are_ordinary_types_to_others() -> None:
    """They are a dict and a list."""
    assert isinstance(freeze({}), dict)
    assert type(freeze({"a": []})) is FrozenDict
    assert type(freeze([[]])) is FrozenList
    assert json.dumps(freeze({"a": [1]})) == '{"a": [1]}'


@pytest.mark.slow
def test_a_hundred_megabytes() -> None:
    """Size alone is no problem, with half a character at the end neither."""
    text = "é" * 50_000_000
    assert loads(dumps({"a": text})) == {"a": text}
    text += "\ud800"
    assert loads(dumps({"a": text})) == {"a": text}


@pytest.mark.parametrize("text", ['{"a":[1,{"b":"\\ud800"}]}', '{"a":[1,{"b":"c"}]}'])
def test_json_is_indented_for_people(text: str) -> None:
    """Over several lines, the same value; half a character is no obstacle."""
    shown = indented(text.encode())
    assert b"\n  " in shown
    assert loads(shown) == loads(text)
