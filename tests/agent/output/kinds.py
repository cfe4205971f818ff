"""Types of every kind, each with a value and its JSON."""

from __future__ import annotations

import datetime as dt
import enum
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic


class Colour(enum.Enum):
    """A colour."""

    RED = "red"
    BLUE = "blue"


@dataclass
class City:
    """A city."""

    name: str
    people: int
    tags: list[str] = field(default_factory=list[str])


class Trip(TypedDict):
    """A trip."""

    to: str
    days: NotRequired[int]


class Point(NamedTuple):
    """A point."""

    x: float
    y: float


class Dog(msgspec.Struct, tag="dog"):
    """A dog."""

    name: str


class Cat(msgspec.Struct, tag="cat"):
    """A cat."""

    lives: int


class Node(pydantic.BaseModel):
    """A node of a tree."""

    label: str
    children: list[Node] = pydantic.Field(default_factory=list["Node"])


class Stay(pydantic.BaseModel):
    """A stay in a hotel."""

    model_config = pydantic.ConfigDict(strict=True)

    first: dt.date
    last: dt.date
    guest: str = "nobody"

    @pydantic.model_validator(mode="after")
    def in_order(self) -> Stay:
        """The stay, which ends after it begins."""
        if self.last < self.first:
            msg = f"last must not be before first, but {self.guest} wants {self.last}"
            raise ValueError(msg)
        return self


SCHEMA: dict[str, Any] = {
    "title": "A total!",
    "description": "The total.",
    "type": "object",
    "properties": {"total": {"type": "integer", "minimum": 0}},
    "required": ["total"],
}
FOREST: dict[str, Any] = {
    "type": "array",
    "items": {"anyOf": [{"type": "string"}, {"$ref": "#"}, {"$ref": "#/$defs/leaf"}]},
    "$defs": {"leaf": {"type": "object", "properties": {"n": {"type": "integer"}}}},
}
_DAY = dt.date(2024, 5, 31)
_STAY = Stay(first=_DAY, last=_DAY)

KINDS: dict[str, tuple[Any, Any, Any]] = {
    "int": (int, 3, 3),
    "float": (float, 2.5, 2.5),
    "bool": (bool, True, True),
    "list": (list[int], [1, 2], [1, 2]),
    "set": (set[str], {"a"}, ["a"]),
    "tuple": (tuple[int, str], (1, "a"), [1, "a"]),
    "dict": (dict[str, int], {"a": 1}, {"a": 1}),
    "literal": (Literal["yes", "no"], "no", "no"),
    "enum": (Colour, Colour.BLUE, "blue"),
    "datetime": (dt.datetime, dt.datetime(2024, 5, 31, tzinfo=dt.UTC), "2024-05-31T00:00:00Z"),
    "date": (dt.date, _DAY, "2024-05-31"),
    "dataclass": (City, City("Basel", 3, ["a"]), {"name": "Basel", "people": 3, "tags": ["a"]}),
    "typed dict": (Trip, {"to": "Bern"}, {"to": "Bern"}),
    "named tuple": (Point, Point(1.0, 2.0), {"x": 1, "y": 2}),
    "struct": (Dog, Dog("Rex"), {"type": "dog", "name": "Rex"}),
    "tagged union": (Dog | Cat, Cat(9), {"type": "cat", "lives": 9}),
    "union": (City | Trip, {"to": "Bern"}, {"to": "Bern"}),
    "optional": (City | None, None, None),
    "model": (Stay, _STAY, {"first": "2024-05-31", "last": "2024-05-31"}),
    "recursive": (
        Node,
        Node(label="a", children=[Node(label="b")]),
        {"label": "a", "children": [{"label": "b"}]},
    ),
    "many": (list[City], [City("Basel", 3)], [{"name": "Basel", "people": 3}]),
    "schema": (SCHEMA, {"total": 3}, {"total": 3}),
    "schema without an object": (FOREST, ["a", ["b", {"n": 1}]], ["a", ["b", {"n": 1}]]),
}
