"""Tools described by a function's signature and docstring."""
# ruff: noqa: D101, D102, D103, D417 - what docstrings say, or do not, is what is tested

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import InvalidInputError
from dragoman.model.functions.docstrings import parse
from dragoman.model.functions.signatures import signature_of

if TYPE_CHECKING:
    from email.message import Message as Forecast

GOOGLE = """The weather.

    For the next days,
    hour by hour.

    Args:
        city (str, optional): Where,
            in the local language.
        days: How many: up to 7.

        *rest: The rest.

    Returns:
        nothing: of interest
    """
NUMPY = """The weather.

    For the next days,
    hour by hour.

    Parameters
    ----------
    city : str, optional
        Where,
        in the local language.
    days, hours
        How many: up to 7.

    Returns
    -------
    nothing : str
        Of interest.
    """
SPHINX = """The weather.

    For the next days,
    hour by hour.

    :param str city: Where,
        in the local language.
    :param days: How many: up to 7.
    :type days: int
    :returns: Nothing of interest.
        Really.
    """


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_styles_of_docstrings(text: str) -> None:
    """All three give the same result; text after the parameters is ignored."""
    said = parse(text)
    assert said.description == "The weather.\n\nFor the next days,\nhour by hour."
    assert said.parameters["city"] == "Where, in the local language."
    assert said.parameters["days"] == "How many: up to 7."
    assert not said.parameters.keys() - {"city", "days", "hours", "rest"}


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (None, ""),
        ("", ""),
        ("One line.", "One line."),
        ("Returns: the weather", "Returns: the weather"),
        (
            "Ratio 1:2 is fine.\n\nNote:\n    Keep this.",
            "Ratio 1:2 is fine.\n\nNote:\n    Keep this.",
        ),
        ("Args:\n    x: y", ""),
    ],
)
def test_descriptions(text: str | None, description: str) -> None:
    """All up to the first section about parameters, results or errors."""
    assert parse(text).description == description


@given(st.text(alphabet="Args:\n -param_x*()Parameters", max_size=80))
def test_no_docstring_breaks_the_parser(text: str) -> None:
    """Whatever people write there."""
    said = parse(text)
    assert all(said.parameters.values())


@dataclasses.dataclass
class Place:
    city: str


def weather(  # type: ignore[no-untyped-def]  # `untyped` is
    place: Place,
    /,
    days: Annotated[int, "How many."] = 1,
    *,
    unit: str | None = None,
    anything: Any = object,
    untyped=None,  # noqa: ANN001  # pyright: ignore[reportMissingParameterType]
) -> Forecast:
    """The weather.

    Args:
        days: Not this.
        unit: C or F.
    """
    raise NotImplementedError


def test_a_function() -> None:
    """Names, types, defaults and descriptions; the return type is ignored."""
    signature = signature_of(weather)
    assert signature.name == "weather"
    assert signature.description == "The weather."
    assert signature.positional == ("place",)
    assert signature.schema(closed=False) == {
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
            "days": {"type": "integer", "description": "How many.", "default": 1},
            "unit": {"type": ["string", "null"], "description": "C or F.", "default": None},
            "anything": {},
            "untyped": {"default": None},
        },
        "required": ["place"],
    }
    assert signature.schema(closed=True)["additionalProperties"] is False


class Station:
    """A weather station."""

    def __call__(self, city: Place) -> str:
        """Ask it.

        Args:
            city: Where.
        """
        return city.city

    def method(self, city: str) -> str:
        """A method."""
        return city

    @classmethod
    def class_method(cls, city: str) -> str:
        """A class method."""
        return city

    @staticmethod
    def static_method(city: str) -> str:
        """A static method."""
        return city


class Silent:
    """The class says it."""

    def __call__(self, city: str) -> str:
        return city


async def asynchronous(city: str) -> str:
    """Asynchronous."""
    return city


def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.parametrize(
    ("function", "name", "description"),
    [
        (Station().method, "method", "A method."),
        (Station.method, "method", "A method."),
        (Station.class_method, "class_method", "A class method."),
        (Station.static_method, "static_method", "A static method."),
        (Station(), "Station", "Ask it."),
        (Silent(), "Silent", "The class says it."),
        (asynchronous, "asynchronous", "Asynchronous."),
        (decorated(asynchronous), "asynchronous", "Asynchronous."),
        (functools.partial(asynchronous), "asynchronous", "Asynchronous."),
        (functools.partial(Station().method), "method", "A method."),
    ],
)
def test_kinds_of_callables(function: Any, name: str, description: str) -> None:
    """Any callable can be a tool, and `self` is not an argument."""
    signature = signature_of(function)
    assert (signature.name, signature.description) == (name, description)
    assert list(signature.schema(closed=True)["properties"]) == ["city"]


def test_bound_arguments_of_a_partial_are_hidden() -> None:
    """A bound argument is neither requested from the model nor shown to it as a default."""

    def ask(key: str, city: str, days: int = 1) -> None:
        """Ask."""

    for settled in (functools.partial(ask, "hunter2"), functools.partial(ask, key="hunter2")):
        schema = signature_of(settled).schema(closed=True)
        assert list(schema["properties"]) == ["city", "days"]
        assert "hunter2" not in str(schema)


def test_names_from_around_a_function() -> None:
    """String annotations may refer to names of enclosing functions."""

    @dataclasses.dataclass
    class Local:
        x: int

    def function(local: Local) -> Any:
        """It works."""
        return Local, local

    assert signature_of(function).read({"local": {"x": 1}}) == {"local": Local(1)}


def collects(*cities: str) -> None:
    """Cities."""


def collects_names(**cities: str) -> None:
    """Cities."""


def lost(city: Forecast) -> None:
    """City."""


def wrong(city: ValueError.missing) -> None:  # type: ignore[name-defined]  # pyright: ignore[reportAttributeAccessIssue]
    """City."""


def impossible(city: list[complex]) -> None:
    """City."""


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (collects, "takes *cities"),
        (collects_names, "takes **cities"),
        (lost, "the function `lost` refers to the type `Forecast`"),
        (wrong, "not a type"),
        (impossible, "parameter `city[]`: the type complex has no JSON Schema"),
        (Place, "use ToolDefinition.from_type"),
        (5, "not int"),
        (vars, "no signature"),
    ],
)
def test_what_can_not_be_a_tool(function: Any, says: str) -> None:
    """The error names the function, and what to do."""
    with pytest.raises(InvalidInputError) as caught:
        signature_of(function)
    assert says in str(caught.value)


def test_arguments_that_can_not_be_read() -> None:
    """The error has the path and the expected type, and no value, not even in its context."""
    with pytest.raises(InvalidInputError) as caught:
        signature_of(weather).read({"place": {"city": 4711}})
    assert str(caught.value) == (
        "the arguments don't match `weather`: $.place.city: expected a string"
    )
    assert caught.value.__context__ is None
