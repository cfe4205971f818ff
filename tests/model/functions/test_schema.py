"""The JSON Schema of Python types, and reading JSON into them."""
# ruff: noqa: D101 - a docstring would become a description in the schema

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import enum
import types
import typing
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)
from uuid import UUID

import annotated_types
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypeAliasType  # a dependency of pydantic

from dragoman.errors import InvalidInputError
from dragoman.model.functions.schema import schema_for, shape_for
from dragoman.model.functions.shapes import MisfitError
from dragoman.model.validation.problems import problems

T = TypeVar("T")
UserId = NewType("UserId", int)
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


class Colour(enum.Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Odd(enum.Enum):
    ROOT = 1j


class Permission(enum.Flag):
    READ = 1


@dataclasses.dataclass
class Node:
    """A node of a tree.

    Attributes:
        name: What it is called.
    """

    name: str
    children: list[Node] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Item:
    sku: str
    count: int = dataclasses.field(default=1, metadata={"description": "How many."})
    colour: Colour = Colour.RED
    made: dt.date = dataclasses.field(default_factory=dt.date.today)
    note: str | None = None
    total: dataclasses.InitVar[int] = 0
    kind: ClassVar[str] = "item"
    secret: str = dataclasses.field(init=False, default="")

    def __post_init__(self, total: int) -> None:
        if self.count < 0:
            msg = f"bad count {self.count}"
            raise ValueError(msg)
        self.secret = str(total)


class Place(TypedDict, total=False):
    city: Required[str]
    days: Annotated[NotRequired[int], "How many."]
    unit: str


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Cat(msgspec.Struct, tag=True, rename="camel"):
    """A cat."""

    lives_left: Annotated[int, msgspec.Meta(ge=0, le=9, description="Of nine.")]
    toys: list[str] = []
    age: int | msgspec.UnsetType = msgspec.UNSET


class Dog(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    name: str


class Row(msgspec.Struct, array_like=True):
    key: str
    value: int = 0


class Box(msgspec.Struct, Generic[T]):
    item: T


class NumberBox(Box[int]):
    pass


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]
    following: Page[T] | None = None


class Person(pydantic.BaseModel):
    """A person."""

    full_name: str = pydantic.Field(min_length=2, description="Both names.")
    friend: Person | None = None
    title: str = pydantic.Field(default="", title="Honorific")


class Team(pydantic.BaseModel):
    lead: Person
    pet: Annotated[Small | Large, pydantic.Field(discriminator="size")]


class Small(pydantic.BaseModel):
    size: Literal["s"] = "s"


class Large(pydantic.BaseModel):
    size: Literal["l"]


Json = TypeAliasType("Json", "dict[str, Json] | list[Json] | str | int")
Names = TypeAliasType("Names", list[str])
Pair = TypeAliasType("Pair", tuple[T, T], type_params=(T,))

PLAIN: list[tuple[Any, dict[str, Any]]] = [
    (str, TEXT),
    (int, WHOLE),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (list, {"type": "array", "items": {}}),
    (list[int], {"type": "array", "items": WHOLE}),
    (Sequence[int], {"type": "array", "items": WHOLE}),
    (tuple[int, ...], {"type": "array", "items": WHOLE}),
    (tuple[int, int], {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2}),
    (
        tuple[int, str],
        {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2},
    ),
    (set[str], {"type": "array", "items": TEXT, "uniqueItems": True}),
    (frozenset[str], {"type": "array", "items": TEXT, "uniqueItems": True}),
    (dict, {"type": "object", "additionalProperties": True}),
    (dict[str, Any], {"type": "object", "additionalProperties": True}),
    (Mapping[str, int], {"type": "object", "additionalProperties": WHOLE}),
    (dict[Any, int], {"type": "object", "additionalProperties": WHOLE}),
    (
        dict[Literal["a"], int],
        {
            "type": "object",
            "propertyNames": {"type": "string", "enum": ["a"]},
            "additionalProperties": WHOLE,
        },
    ),
    (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    (
        Literal["a", 1, None, True],  # noqa: PYI061 - the order is kept
        {"type": ["string", "integer", "null", "boolean"], "enum": ["a", 1, None, True]},
    ),
    (Literal[Colour.RED], {"type": "string", "enum": ["red"]}),
    (Colour, {"description": "What it looks like.", "type": "string", "enum": ["red", "blue"]}),
    (Level, {"type": "integer", "enum": [1, 2]}),
    (str | None, {"type": ["string", "null"]}),
    (int | float, {"type": "number"}),
    (int | Any, {}),
    (list[int] | str, {"anyOf": [{"type": "array", "items": WHOLE}, TEXT]}),
    (UserId, WHOLE),
    (Names, {"type": "array", "items": TEXT}),
    (Pair[int], {"type": "array", "items": WHOLE, "minItems": 2, "maxItems": 2}),
    (TypeVar("B", bound=int), WHOLE),
    (TypeVar("C", int, str), {"type": ["integer", "string"]}),
    (T, {}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (dt.date, {"type": "string", "format": "date"}),
    (dt.time, {"type": "string", "format": "time"}),
    (dt.timedelta, {"type": "string", "format": "duration"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (Decimal, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (Path, TEXT),
    (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    (
        Annotated[str, msgspec.Meta(min_length=1, pattern="^a")],
        {"type": "string", "minLength": 1, "pattern": "^a"},
    ),
    (
        Annotated[str | None, annotated_types.Len(2, 3)],
        {"type": ["string", "null"], "minLength": 2, "maxLength": 3},
    ),
    (
        Annotated[list[int], annotated_types.MinLen(2)],
        {"type": "array", "items": WHOLE, "minItems": 2},
    ),
    (
        Annotated[dict[str, int], annotated_types.MaxLen(2)],
        {"type": "object", "additionalProperties": WHOLE, "maxProperties": 2},
    ),
    (
        Annotated[float, annotated_types.Interval(gt=0, le=1)],
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    ),
    (Annotated[int, annotated_types.MultipleOf(5)], {"type": "integer", "multipleOf": 5}),
    (
        Annotated[int, pydantic.Field(ge=1, lt=5, description="D")],
        {"type": "integer", "description": "D", "minimum": 1, "exclusiveMaximum": 5},
    ),
    (
        Annotated[str, pydantic.Field(pattern="^x", examples=["x"])],
        {"type": "string", "pattern": "^x", "examples": ["x"]},
    ),
    (Annotated[int, msgspec.Meta(extra_json_schema={"x-y": 1})], {"type": "integer", "x-y": 1}),
    (Annotated[Names, annotated_types.MinLen(1)], {"type": "array", "items": TEXT, "minItems": 1}),
    (Annotated[str, annotated_types.Gt(5), {"unhashable": []}, float("nan")], TEXT),
    (list[Annotated[int, ["unhashable"]]], {"type": "array", "items": WHOLE}),
]


@pytest.mark.parametrize(("kind", "schema"), PLAIN, ids=lambda each: str(each)[:40])
def test_types_without_fields(kind: Any, schema: dict[str, Any]) -> None:
    """Each type has one schema, in the words that providers understand."""
    assert schema_for(kind) == schema


def test_a_dataclass() -> None:
    """Defaults make fields optional, metadata describes them, non-arguments are left out."""
    assert schema_for(Item) == {
        "type": "object",
        "properties": {
            "sku": TEXT,
            "count": {"type": "integer", "description": "How many.", "default": 1},
            "colour": {
                "description": "What it looks like.",
                "type": "string",
                "enum": ["red", "blue"],
                "default": "red",
            },
            "made": {"type": "string", "format": "date"},
            "note": {"type": ["string", "null"], "default": None},
            "total": {"type": "integer", "default": 0},
        },
        "required": ["sku"],
    }


def test_a_typed_dict() -> None:
    """Required and NotRequired count, within `Annotated` and in postponed annotations too."""
    assert schema_for(Place) == {
        "type": "object",
        "properties": {
            "city": TEXT,
            "days": {"type": "integer", "description": "How many."},
            "unit": TEXT,
        },
        "required": ["city"],
    }


def test_a_named_tuple() -> None:
    """Names are more useful to a model than the order."""
    assert schema_for(Point) == {
        "type": "object",
        "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
        "required": ["x"],
    }
    bare = collections.namedtuple("bare", "x")  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple]
    assert schema_for(bare)["properties"] == {"x": {}}


def test_a_struct() -> None:
    """Renaming, tags, constraints and defaults are those that msgspec reads by."""
    assert schema_for(Cat) == {
        "description": "A cat.",
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["Cat"]},
            "livesLeft": {
                "type": "integer",
                "description": "Of nine.",
                "minimum": 0,
                "maximum": 9,
            },
            "toys": {"type": "array", "items": TEXT, "default": []},
            "age": WHOLE,
        },
        "required": ["type", "livesLeft"],
    }
    assert schema_for(Dog)["additionalProperties"] is False
    assert schema_for(Row) == {
        "type": "array",
        "prefixItems": [TEXT, {"type": "integer", "default": 0}],
        "minItems": 1,
        "maxItems": 2,
    }


def test_a_recursive_type_goes_to_defs() -> None:
    """The root is also written out, because providers require an object there."""
    schema = schema_for(Node)
    node = schema.pop("$defs")["Node"]
    assert node == schema
    assert schema["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert schema["properties"]["name"]["description"] == "What it is called."
    assert schema["description"] == "A node of a tree."


def test_a_type_that_is_used_twice_goes_to_defs() -> None:
    """A type that is used once is inlined."""
    schema = schema_for(tuple[Annotated[Dog, "Mine."], Dog])
    assert schema["prefixItems"] == [
        {"$ref": "#/$defs/Dog", "description": "Mine."},
        {"$ref": "#/$defs/Dog"},
    ]
    assert "$defs" not in schema_for(list[Dog])


def test_a_recursive_alias() -> None:
    """As `type Json = …` is one."""
    schema = schema_for(Json)
    assert schema["anyOf"][1]["items"] == {"$ref": "#/$defs/Json"}
    assert problems(schema, {"a": [1, {"b": "c"}]}) == []
    assert problems(schema, {"a": [1, {"b": None}]}) != []


def test_generic_classes_are_filled_in() -> None:
    """Each parametrisation is a separate type."""
    schema = schema_for(tuple[Page[int], Page[str], Box[int], NumberBox, Box[Any]])
    assert schema["$defs"]["Page_int"]["properties"]["items"] == {"type": "array", "items": WHOLE}
    assert schema["$defs"]["Page_str"]["properties"]["items"] == {"type": "array", "items": TEXT}
    items = [each["properties"]["item"] for each in schema["prefixItems"][2:]]
    assert items == [WHOLE, WHOLE, {}]


def test_a_pydantic_model() -> None:
    """It describes itself; generated titles are dropped, and its definitions join ours."""
    schema = schema_for(tuple[Team, Person])
    person = schema["$defs"]["Person"]
    assert person["description"] == "A person."
    assert person["properties"]["full_name"] == {
        "type": "string",
        "minLength": 2,
        "description": "Both names.",
    }
    assert person["properties"]["title"]["title"] == "Honorific"
    assert schema["prefixItems"][1] == {"$ref": "#/$defs/Person"}
    assert "discriminator" not in schema["prefixItems"][0]["properties"]["pet"]
    assert schema_for(Person)["type"] == "object"


@pydantic.dataclasses.dataclass
class Checked:
    count: int = pydantic.Field(gt=0, description="How many.")
    unit: str = pydantic.Field(default="C")


def test_a_pydantic_dataclass() -> None:
    """A dataclass whose defaults are notes."""
    assert schema_for(Checked) == {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many.", "exclusiveMinimum": 0},
            "unit": {"type": "string", "default": "C"},
        },
        "required": ["count"],
    }


def test_two_types_of_one_name_are_kept_apart() -> None:
    """The second one's name gets a number."""
    twin = pydantic.create_model("Person", age=(int, ...))
    other = dataclasses.make_dataclass("Person", [("size", int)])
    kinds = (twin, other, Person, twin, other, Person)
    schema = schema_for(tuple.__class_getitem__(kinds))
    assert set(schema["$defs"]) == {"Person", "Person_2", "Person_3"}
    assert schema["prefixItems"][:3] == schema["prefixItems"][3:]
    assert problems(schema, [{"age": 1}, {"size": 1}, {"full_name": "Al"}] * 2) == []


def test_closed_schemas() -> None:
    """Listed properties are the only ones allowed; mappings stay open."""
    schema = schema_for(tuple[Item, dict[str, Dog], Team], closed=True)
    item, table, team = schema["prefixItems"]
    assert item["additionalProperties"] is team["additionalProperties"] is False
    assert table["additionalProperties"]["additionalProperties"] is False
    assert "additionalProperties" not in schema


@dataclasses.dataclass
class _Impossible:
    fine: int
    bad: list[complex]


@dataclasses.dataclass
class _Lost:
    x: Missing  # type: ignore[name-defined]  # noqa: F821


class _Stranger:
    pass


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (complex, "`complex`: the type complex has no JSON Schema"),
        (_Impossible, "`_Impossible.bad[]`: the type complex has no JSON Schema"),
        (_Stranger, "_Stranger"),
        (Permission, "Permission"),
        (Odd, "type complex can't be represented"),
        (Literal[b"x"], "type bytes can't be represented"),
        (dict[float, int], "must be strings, not float"),
        (dict[Level, int], "must be strings, not Level"),
        (typing.Callable[[], int], "has no JSON Schema"),
        ("int", "has no JSON Schema"),
        (_Lost, "`_Lost` refers to the type `Missing`"),
    ],
)
def test_types_that_json_can_not_describe(kind: Any, says: str) -> None:
    """The error names where and what."""
    with pytest.raises(InvalidInputError) as caught:
        schema_for(kind)
    assert says in str(caught.value)


READ: list[tuple[Any, Any, Any]] = [
    (int, 2.0, 2),
    (float, 2, 2.0),
    (int | float, 2.0, 2.0),
    (float | int, 2, 2.0),
    (bool | int, 1, 1),
    (Any, {"a": [1]}, {"a": [1]}),
    (Colour, "blue", Colour.BLUE),
    (Literal[True, 1], 1, 1),
    (Literal[Colour.RED], "red", Colour.RED),
    (dict[int, Colour], {"3": "red"}, {3: Colour.RED}),
    (set[int], [1, 2], {1, 2}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (tuple[int, ...], [1, 2], (1, 2)),
    (collections.deque[int], [1], collections.deque([1])),
    (dt.datetime, "2024-01-02T03:04:05Z", dt.datetime(2024, 1, 2, 3, 4, 5, tzinfo=dt.UTC)),
    (dt.timedelta, "PT90S", dt.timedelta(seconds=90)),
    (Decimal, "19.99", Decimal("19.99")),
    (bytes, "aGk=", b"hi"),
    (Path, "/tmp", Path("/tmp")),  # noqa: S108 - nothing is written
    (UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
    (Node, {"name": "a", "children": [{"name": "b"}]}, Node("a", [Node("b")])),
    (Place, {"city": "Basel"}, {"city": "Basel"}),
    (Point, {"x": 1}, Point(1.0)),
    (Cat | Dog, {"type": "Dog", "name": "Rex"}, Dog("Rex")),
    (Row, ["a", 2], Row("a", 2)),
    (
        Point | Item,
        {"sku": "a", "count": 2, "made": "2024-01-01"},
        Item("a", 2, made=dt.date(2024, 1, 1)),
    ),
    (Node | Dog | Box[Any], {"item": {"a": 1}}, Box({"a": 1})),
    (list[Person | Team], [{"full_name": "Al"}], [Person(full_name="Al")]),
    (Annotated[Decimal, annotated_types.Gt(Decimal(0))], "1", Decimal(1)),
]


@pytest.mark.parametrize(("kind", "value", "expected"), READ, ids=lambda each: str(each)[:40])
def test_reading(kind: Any, value: Any, expected: Any) -> None:
    """A value that fits the schema is read into the type."""
    assert problems(schema_for(kind), value) == []
    read = shape_for(kind).read(value)
    assert read == expected
    assert type(read) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        (int, "a", ""),
        (int, 1.5, ""),
        (str, 1, ""),
        (list[int], [1, "a"], "[1]"),
        (list[int], {}, ""),
        (tuple[int, int], [1], ""),
        (set[list[int]], [[1]], ""),
        (dict[int, int], {"a": 1}, ".*"),
        (Node, {"name": "a", "children": [{}]}, ".children[0]"),
        (Node, [], ""),
        (Colour, "green", ""),
        (dt.date, "soon", ""),
        (Dog, {"name": "Rex", "type": "Cat"}, ""),
        (Item, {"sku": "a", "count": -77}, ""),
        (Person, {"full_name": "-"}, ""),
        (Annotated[Decimal, annotated_types.Gt(Decimal(0))], "-77", ""),
        (int | list[int], "a", ""),
    ],
)
def test_a_mismatch_is_reported_by_path(kind: Any, value: Any, path: str) -> None:
    """The error has the path and the expected type, but not the value."""
    with pytest.raises(MisfitError) as caught:
        shape_for(kind).read(value)
    assert caught.value.path == path
    assert "77" not in str(caught.value)
    assert caught.value.__cause__ is None


SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text(max_size=5)),
    (int, st.integers(-9, 9)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (type(None), st.none()),
    (Colour, st.sampled_from(Colour)),
    (Literal["a", 5], st.sampled_from(["a", 5])),
    (dt.datetime, st.datetimes()),
    (dt.date, st.dates()),
    (UUID, st.uuids()),
    (bytes, st.binary(max_size=5)),
    (Annotated[int, msgspec.Meta(ge=1, lt=7)], st.integers(1, 6)),
]


def _compound(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = inner.map(
        lambda each: (types.GenericAlias(list, each[0]), st.lists(each[1], max_size=3))
    )
    tables = inner.map(
        lambda each: (
            types.GenericAlias(dict, (str, each[0])),
            st.dictionaries(st.text(max_size=3), each[1], max_size=3),
        )
    )
    optional = inner.map(
        lambda each: (typing.Union[each[0], None], st.none() | each[1])  # noqa: UP007 - a value
    )
    fields = st.lists(inner, min_size=1, max_size=3)
    return lists | tables | optional | fields.map(_dataclass) | fields.map(_struct)


def _names(fields: list[Any]) -> list[tuple[str, Any]]:
    return [(f"field_{at}", each[0]) for at, each in enumerate(fields)]


def _dataclass(fields: list[Any]) -> tuple[Any, st.SearchStrategy[Any]]:
    kind = dataclasses.make_dataclass("Made", _names(fields))
    return kind, st.builds(kind, *[each[1] for each in fields])


def _struct(fields: list[Any]) -> tuple[Any, st.SearchStrategy[Any]]:
    kind = msgspec.defstruct("MadeStruct", _names(fields), rename="camel", tag=True)
    return kind, st.builds(kind, *[each[1] for each in fields])


TYPES = st.recursive(st.sampled_from(SIMPLE), _compound, max_leaves=5)


@given(st.data())
def test_what_fits_a_type_fits_its_schema(data: st.DataObject) -> None:
    """The JSON of an instance is valid, and read back it is the instance."""
    kind, values = data.draw(TYPES)
    value = data.draw(values)
    plain = msgspec.to_builtins(value)
    for closed in (False, True):
        assert problems(schema_for(kind, closed=closed), plain) == []
    assert shape_for(kind).read(plain) == value


@given(st.data())
def test_what_does_not_fit_a_type_does_not_fit_its_schema(data: st.DataObject) -> None:
    """A missing field, an unknown field or a value of another type is found."""
    fields = data.draw(st.lists(TYPES, min_size=1, max_size=3))
    kind, values = data.draw(st.sampled_from([_dataclass, _struct]))(fields)
    schema = schema_for(kind, closed=True)
    plain: dict[str, Any] = msgspec.to_builtins(data.draw(values))
    name = data.draw(st.sampled_from(list(plain)))
    assert problems(schema, {**plain, "stranger": 1}) != []
    assert problems(schema, {key: plain[key] for key in plain if key != name}) != []
    assert problems(schema, {**plain, name: object()}) != []
