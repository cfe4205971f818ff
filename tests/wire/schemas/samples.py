"""Real schemas: of Python types, and of tools in recorded requests."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import pydantic

from tests.corpus import Corpus, Recording


class Color(enum.Enum):
    """An enum of texts."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """An enum of numbers."""

    LOW = 1
    HIGH = 2


class Cat(pydantic.BaseModel):
    """One of two that are told apart by their kind."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):
    """The other."""

    kind: Literal["dog"]
    name: str | None = None


class Node(pydantic.BaseModel):
    """A tree."""

    label: str
    children: list[Node] = []
    parent: Node | None = None


class Zoo(pydantic.BaseModel):
    """Nearly everything that a model can hold."""

    model_config = pydantic.ConfigDict(extra="forbid")

    name: Annotated[str, pydantic.Field(min_length=1, max_length=40, pattern="^[A-Z]")]
    count: Annotated[int, pydantic.Field(gt=0, le=100)] = 1
    ratio: float | None = None
    color: Annotated[Color, pydantic.Field(description="Its colour.")] = Color.RED
    level: Level
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]
    either: int | str
    pair: tuple[int, str]
    many: tuple[int, ...] = ()
    table: dict[str, int] = {}
    free: dict[str, Any] | None = None
    unique: set[str] = set()
    when: dt.datetime
    day: dt.date | None = None
    ident: uuid.UUID
    price: decimal.Decimal
    anything: Any = None
    flags: list[Literal["a", "b", 3, True]] = []
    tree: Node | None = None


class Flat(pydantic.BaseModel):
    """What most tools look like."""

    city: str = pydantic.Field(description="Where.")
    unit: Literal["c", "f"] = "c"
    days: int | None = None


class Point(NamedTuple):
    """A tuple with names."""

    x: float
    y: float


class Shape(msgspec.Struct, tag=True):
    """One of two, by msgspec's tag."""

    area: float


class Line(msgspec.Struct, tag=True):
    """The other."""

    start: Point
    end: Point


class Drawing(msgspec.Struct):
    """What msgspec makes of types."""

    parts: list[Shape | Line]
    title: Annotated[str, msgspec.Meta(min_length=1, description="Its title.")]
    size: tuple[int, int] = (1, 1)
    meta: dict[str, str] = {}
    inner: Drawing | None = None
    level: Level = Level.LOW


def of_types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Schemas that libraries make of types."""
    for model in (Zoo, Node, Cat, Flat):
        yield model.__name__, model.model_json_schema()
    for kind in (Drawing, Line, Shape | Line, list[Point]):
        yield str(kind), msgspec.json.schema(kind)
    yield "adapter", pydantic.TypeAdapter(list[Cat | Dog] | int).json_schema()


class Found(NamedTuple):
    """A schema of a recorded request."""

    file: str
    kind: str
    """Where it stood: `parameters`, `input_schema`, `responseSchema`, …"""
    is_strict: bool
    is_accepted: bool
    schema: dict[str, Any]
    host: str


@functools.cache
def recorded(corpus: Corpus) -> list[Found]:
    """The schemas of tools and outputs in recorded requests, each once."""
    found: dict[str, Found] = {}
    for recording in corpus.select():
        for one in _schemas(recording):
            found.setdefault(f"{one[1:4]}{one.schema!r}{one.host}", one)
    return list(found.values())


def _schemas(recording: Recording) -> Iterator[Found]:
    body, row = recording.request_body, recording.row
    if not isinstance(body, dict):
        return
    for holder, kind in _holders(body):
        schema = holder.get(kind)
        if isinstance(schema, dict):
            is_strict = holder.get("strict") is True
            yield Found(row.file, kind, is_strict, row.status == 200, schema, row.host)


def _holders(body: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    tools = body.get("tools")
    for tool in tools if isinstance(tools, list) else []:
        if isinstance(tool, dict):
            yield tool.get("function") or tool, "parameters"
            yield tool, "input_schema"
            declarations = tool.get("functionDeclarations", tool.get("function_declarations"))
            for each in declarations if isinstance(declarations, list) else []:
                for kind in ("parameters", "parametersJsonSchema", "parameters_json_schema"):
                    yield each, kind
    for holder in (
        (body.get("response_format") or {}),
        (body.get("text") or {}),
        (body.get("output_config") or {}),
    ):
        if isinstance(holder, dict):
            inner = holder.get("json_schema") or holder.get("format") or {}
            if isinstance(inner, dict):
                yield inner, "schema"
    config = body.get("generationConfig")
    if isinstance(config, dict):
        yield config, "responseSchema"
        yield config, "responseJsonSchema"
