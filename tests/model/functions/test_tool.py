"""`@tool`, and definitions made from types and functions."""
# ruff: noqa: D101, D103, D417 - docstrings become descriptions, and some must be missing

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import enum
import subprocess
import sys
import warnings
from typing import Any, NamedTuple, TypedDict

import msgspec
import pydantic
import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze
from dragoman.model.functions.tool import Tool, tool
from dragoman.model.tools import LongDescriptionWarning, ToolCall, ToolDefinition


class Unit(enum.Enum):
    CELSIUS = "C"


@dataclasses.dataclass
class Period:
    start: dt.date
    days: int = 1


class Place(pydantic.BaseModel):
    city: str


@tool
def weather(place: Place, period: Period, /, unit: Unit = Unit.CELSIUS) -> tuple[Any, ...]:
    """The weather.

    Args:
        place: Where.
    """
    return place, period, unit


@tool(name="now", description="The time.", strict=False)
async def current_time() -> str:
    return "late"


class Clock:
    """Tells the time."""

    def __init__(self, hour: int) -> None:
        self.hour = hour

    @tool
    def ask(self, offset: int = 0) -> int:
        """What time is it?"""
        return self.hour + offset


def test_a_tool_is_called_like_its_function() -> None:
    """The decorator takes nothing away."""
    place, period = Place(city="Basel"), Period(dt.date(2024, 1, 1))
    assert weather(place, period) == (place, period, Unit.CELSIUS)
    assert weather.__name__ == "weather"
    assert weather.__doc__ == weather.function.__doc__
    assert repr(weather) == "Tool(weather)"


def test_validate_makes_the_types_of_the_signature() -> None:
    """Ready for the call, including positional-only parameters."""
    call = ToolCall.create(
        "c", "weather", {"place": {"city": "Basel"}, "period": {"start": "2024-01-01"}, "unit": "C"}
    )
    arguments = weather.validate(call.arguments)
    expected = (Place(city="Basel"), Period(dt.date(2024, 1, 1)), Unit.CELSIUS)
    assert tuple(arguments.values()) == expected
    assert weather(**arguments) == expected  # type: ignore[call-arg]  # positional-only


def test_validate_reports_all_problems() -> None:
    """Each with its path, expected type and actual type, so that the model can correct them."""
    with pytest.raises(InvalidInputError) as caught:
        weather.validate({"place": {"city": 4711}, "period": {"start": "soon"}, "hunter2": 1})
    assert str(caught.value) == (
        "the arguments don't match `weather`: "
        "$.place.city: expected a string, got integer; "
        "$.period.start: expected a date such as 2024-05-31, got another string; "
        "$: expected only these properties: place, period, unit, got 1 more"
    )


def test_absent_arguments_are_left_to_the_function() -> None:
    """Its own defaults apply."""
    assert current_time.validate({}) == {}
    assert Clock(3).ask.validate({}) == {}


def test_functions_get_mutable_arguments() -> None:
    """The call's arguments are frozen; a function gets ordinary lists and dicts."""

    @tool(description="Sort.")
    def order(items: list[Any], options: Any) -> None: ...

    read = order.validate(freeze({"items": [{"a": 1}], "options": {"b": [2]}}))
    read["items"][0]["a"] = 2
    read["options"]["b"].append(3)
    assert read == {"items": [{"a": 2}], "options": {"b": [2, 3]}}


def test_options() -> None:
    """Name, description and strictness, and whether it must be awaited."""
    definition = current_time.definition
    assert (definition.name, definition.description) == ("now", "The time.")
    assert definition.strict is False
    assert definition.parameters == {"type": "object", "properties": {}}
    assert current_time.is_async
    assert not weather.is_async
    assert asyncio.run(current_time()) == "late"


def test_methods() -> None:
    """Through an object it is that object's tool."""
    bound = Clock(3).ask
    assert isinstance(bound, Tool)
    assert bound(**bound.validate({"offset": 2})) == 5
    assert bound.definition is Clock.ask.definition
    assert list(bound.definition.parameters or ()) == ["type", "properties", "additionalProperties"]


@dataclasses.dataclass
class WriteFile:
    """Write a file.

    Attributes:
        path: Where to.
    """

    path: str
    content: str
    encoding: str | None = None


class WriteFileDict(TypedDict):
    """Write a file."""

    path: str
    content: str


class WriteFileTuple(NamedTuple):
    """Write a file."""

    path: str
    content: str
    encoding: str | None = None


class WriteFileStruct(msgspec.Struct):
    """Write a file."""

    path: str
    content: str
    encoding: str | None = None


class WriteFileModel(pydantic.BaseModel):
    """Write a file."""

    path: str
    content: str
    encoding: str | None = None


KINDS = [WriteFile, WriteFileDict, WriteFileTuple, WriteFileStruct, WriteFileModel]


@pytest.mark.parametrize("kind", KINDS)
def test_from_type(kind: type) -> None:
    """Seed 004, CreateFromType: name, description, properties, and what is required."""
    definition = ToolDefinition.from_type(kind)
    assert (definition.name, definition.description) == (kind.__name__, "Write a file.")
    parameters = definition.parameters or {}
    assert parameters["type"] == "object"
    assert list(parameters["required"]) == ["path", "content"]
    assert parameters["additionalProperties"] is False
    assert "description" not in parameters
    given = ToolDefinition.from_type(kind, "write_file", "Writes.", strict=False)
    assert (given.name, given.description, given.strict) == ("write_file", "Writes.", False)
    assert "additionalProperties" not in (given.parameters or {})


def test_a_description_is_needed() -> None:
    """The model chooses tools by their description; the error explains where to put one."""

    def silent() -> None: ...

    with pytest.raises(InvalidInputError, match=r"`silent` has no description.*docstring"):
        tool(silent)
    with pytest.raises(InvalidInputError, match=r"`Unit` has no description"):
        ToolDefinition.from_type(Unit)


def test_a_type_without_fields_is_no_tool() -> None:
    """Arguments are an object."""
    with pytest.raises(InvalidInputError, match="object"):
        ToolDefinition.from_type(list[int], "numbers", "Numbers.")


def test_long_descriptions_warn() -> None:
    """Over 1,024 characters; the warning has the length, not the words, and blames the caller."""

    def function() -> None: ...

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ToolDefinition.create("f", "x" * 1024)
        ToolDefinition.create("f", "x" * 1025)
        ToolDefinition.from_type(WriteFile, description="x" * 1025)
        ToolDefinition.from_function(function, description="x" * 1025)
        tool(description="x" * 1025)(function)
    assert [each.category for each in caught] == [LongDescriptionWarning] * 4
    assert {each.filename for each in caught} == {__file__}
    assert all("1025" in str(each.message) and "xx" not in str(each.message) for each in caught)


def test_strict_closes_what_people_wrote() -> None:
    """FR-84, only at the top level, and not where the schema sets it itself (AC-084)."""
    inner = {"type": "object", "properties": {}}
    written = {"type": "object", "properties": {"a": inner}}
    assert ToolDefinition.create("f", "It.", written).parameters == {
        **written,
        "additionalProperties": False,
    }
    assert ToolDefinition.create("f", "It.", written, strict=False).parameters == written
    kept = {**written, "allOf": [inner]}
    assert ToolDefinition.create("f", "It.", kept).parameters == kept


def test_check_arguments() -> None:
    """It raises or returns nothing; a tool without a schema accepts anything."""
    definition = ToolDefinition.create("f", "It.", {"type": "object", "required": ["a"]})
    definition.replace(strict=False, parameters={"type": "object"}).check_arguments({"a": 1})
    with pytest.raises(InvalidInputError, match=r"`f`: \$\.a: expected a value, got nothing"):
        definition.check_arguments({})
    with pytest.raises(InvalidInputError, match="must be Mapping, not list"):
        definition.check_arguments([])  # type: ignore[arg-type]
    ToolDefinition("f", "It.", kind="custom").check_arguments({"a": 1})


def test_definitions_load_quickly() -> None:
    """What makes and checks schemas is loaded when it is needed."""
    code = (
        "import sys, dragoman.model.tools;"
        "print([name for name in sys.modules if name.rpartition('.')[2] in"
        " {'typeschema', 'signatures', 'validation', 'patterns', 'fractions'}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
