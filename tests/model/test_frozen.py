"""Immutable JSON values."""

from __future__ import annotations

import copy
import json
import pickle
from collections import UserDict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import (
    EMPTY,
    MAX_DEPTH,
    FrozenDict,
    FrozenList,
    freeze,
    freeze_mapping,
    thaw,
)
from tests.model import strategies as some


class Colour(StrEnum):
    """A text that is more than a text."""

    RED = "red"


class Level(IntEnum):
    """A number that is more than a number."""

    HIGH = 3


@given(some.json_values)
def test_frozen_values_are_equal_to_what_was_given(value: Any) -> None:
    """They compare, hash and thaw as the value they were made of."""
    frozen = freeze(value)
    assert frozen == value
    assert hash(frozen) == hash(freeze(copy.deepcopy(value)))
    assert thaw(frozen) == value
    assert freeze(frozen) == frozen


@given(some.json_objects)
def test_frozen_objects_work_as_ordinary_ones(value: dict[str, Any]) -> None:
    """JSON, unpacking, copies and pickle take them for what they are."""
    frozen = freeze_mapping(value)
    assert isinstance(frozen, dict)
    assert json.loads(json.dumps(frozen)) == value
    assert {**frozen} == value
    for same in (copy.copy(frozen), copy.deepcopy(frozen), pickle.loads(pickle.dumps(frozen))):  # noqa: S301 - our own bytes
        assert same == value
        assert type(same) is FrozenDict


def test_a_copy_is_deep() -> None:
    """Changing the original doesn't change the frozen value."""
    original: dict[str, Any] = {"a": [{"b": 1}]}
    frozen = freeze(original)
    original["a"][0]["b"] = 2
    original["a"].append(3)
    assert frozen == {"a": [{"b": 1}]}


@pytest.mark.parametrize("change", [
    lambda d: d.__setitem__("a", 1), lambda d: d.__delitem__("a"), lambda d: d.clear(),
    lambda d: d.pop("a"), lambda d: d.popitem(), lambda d: d.setdefault("b", 1),
    lambda d: d.update(b=1), lambda d: d.__ior__({"b": 1}),
])  # fmt: skip
def test_a_frozen_dict_cannot_be_changed(change: Callable[[Any], Any]) -> None:
    """Every method that would change it raises, and leaves it unchanged."""
    frozen = freeze({"a": 1})
    with pytest.raises(TypeError, match="FrozenDict is immutable"):
        change(frozen)
    assert frozen == {"a": 1}


@pytest.mark.parametrize("change", [
    lambda x: x.__setitem__(0, 1), lambda x: x.__delitem__(0), lambda x: x.append(1),
    lambda x: x.clear(), lambda x: x.extend([1]), lambda x: x.insert(0, 1), lambda x: x.pop(),
    lambda x: x.remove(1), lambda x: x.reverse(), lambda x: x.sort(), lambda x: x.__iadd__([1]),
    lambda x: x.__imul__(2),
])  # fmt: skip
def test_no_way_to_change_a_list(change: Callable[[Any], Any]) -> None:
    """As for dicts."""
    frozen = freeze([1, 2])
    with pytest.raises(TypeError, match="FrozenList is immutable"):
        change(frozen)
    assert frozen == [1, 2]


def test_every_changing_method_is_covered() -> None:
    """All that `dict` and `list` can do to themselves, the frozen ones refuse."""
    changing = {
        dict: {"__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault",
               "update"},
        list: {"__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend",
               "insert", "pop", "remove", "reverse", "sort"},
    }  # fmt: skip
    for kind, names in ((FrozenDict, changing[dict]), (FrozenList, changing[list])):
        assert all(name in vars(kind) for name in names)


def test_thawed_values_can_be_changed() -> None:
    """They are ordinary dicts and lists, all the way down."""
    thawed = thaw(freeze({"a": [{"b": 1}]}))
    thawed["a"][0]["b"] = 2
    thawed["a"].append(3)
    assert thawed == {"a": [{"b": 2}, 3]}


@pytest.mark.parametrize(("value", "frozen"), [
    ((1, 2), [1, 2]),
    (MappingProxyType({"a": 1}), {"a": 1}),
    ({Colour.RED: Colour.RED}, {"red": "red"}),
    ([Level.HIGH], [3]),
])  # fmt: skip
def test_values_similar_to_json_are_converted(value: Any, frozen: Any) -> None:
    """Tuples, other mappings, and enums whose value is JSON become plain types."""
    made = freeze(value)
    assert made == frozen
    assert json.dumps(made) == json.dumps(frozen)
    for item in made:
        assert type(item) in {str, int}


@pytest.mark.parametrize(("value", "problem"), [
    (float("nan"), "NaN or infinity"),
    ([float("-inf")], "NaN or infinity"),
    ({"a": object()}, "contains a object"),
    ({"a": b"bytes"}, "contains a bytes"),
    ([{1, 2}], "contains a set"),
    ({1: 2}, "a key of type int"),
    ({None: 2}, "a key of type NoneType"),
])  # fmt: skip
def test_what_json_cannot_carry_is_refused(value: Any, problem: str) -> None:
    """The error names the place and the type."""
    with pytest.raises(InvalidInputError, match=f"the thing.*{problem}"):
        freeze(value, "the thing")


def nested(depth: int) -> Any:
    """A value of that many lists within lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth_has_a_limit() -> None:
    """Far more than anybody needs; beyond it, a clear error instead of a crash."""
    assert thaw(freeze(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 2, 10_000):
        with pytest.raises(InvalidInputError, match="is nested deeper than"):
            freeze(nested(depth))


def test_a_recursive_value_is_rejected() -> None:
    """It has no end."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInputError, match="is nested deeper than"):
        freeze(endless)


@pytest.mark.parametrize("value", [[], "a", 5, [("a", 1)]])
def test_a_mapping_is_a_mapping(value: Any) -> None:
    """Where an object is needed nothing else will do."""
    with pytest.raises(InvalidInputError, match="value must be a mapping"):
        freeze_mapping(value)


def test_there_is_one_empty_mapping() -> None:
    """None and every empty mapping become it: fields that hold it are not written down."""
    assert freeze_mapping(None) is EMPTY
    assert freeze_mapping({}) is EMPTY
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY  # noqa: S301 - our own bytes


def test_a_mapping_that_calls_itself_false_keeps_its_content() -> None:
    """Objects of other libraries may define what their truth means."""

    class Unset(UserDict[str, int]):
        def __bool__(self) -> bool:
            return False

    assert freeze_mapping(Unset(a=1)) == {"a": 1}
    assert freeze_mapping(Unset()) is EMPTY
