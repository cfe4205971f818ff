"""Errors raised by users' classes, reported without quoting the value."""

from __future__ import annotations

from typing import Annotated, Any

import pydantic
import pytest

from dragoman.errors import InvalidInputError
from dragoman.model.functions.complaints import complaint
from dragoman.model.functions.reading import read_as
from dragoman.model.functions.schema import schema_for


@pytest.mark.parametrize(
    ("error", "given", "words"),
    [
        (ValueError("the end is before the start"), {"a": 1}, "the end is before the start"),
        (ValueError("'Oz' is no city"), {"city": "Oz"}, "… is no city"),
        (ValueError("OZYMANDIAS is no city"), ["ozymandias"], "… is no city"),
        (ValueError("at most 10, not 12"), [12, 1], "at most 10, not …"),
        (ValueError("no key wizard"), {"wizard": True}, "no key …"),
        (AssertionError("even ones only"), 3, "even ones only"),
        (LookupError("Oz"), "Oz", "LookupError"),
        (ValueError(""), "Oz", "ValueError"),
        (ValueError("no"), list(range(20_000)), "not accepted"),
        (ValueError("x" * 50_000), "y", "not accepted"),
    ],
)
def test_the_value_is_blotted_out(error: Exception, given: Any, words: str) -> None:
    """The message stays, values quoted in it are masked; other errors give their class."""
    assert complaint(error, given, ["city"]) == words


def _short(text: str) -> str:
    if len(text) > 3:
        msg = f"{text} is too long for this"
        raise ValueError(msg)
    return text


class Book(pydantic.BaseModel):
    """A book."""

    titles: dict[str, Annotated[str, pydantic.AfterValidator(_short)]]


def test_errors_name_the_declared_fields() -> None:
    """The path of a pydantic error names declared fields; undeclared keys are shown as a star."""
    with pytest.raises(InvalidInputError) as caught:
        read_as(Book, {"titles": {"secretkey": "secretvalue"}}, "the book")
    assert "titles.*: … is too long for this" in str(caught.value)
    assert "secret" not in str(caught.value)


class Odd(pydantic.BaseModel):
    """Pydantic itself can't describe it."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)

    thing: slice


def test_what_pydantic_cannot_describe() -> None:
    """Its error becomes ours."""
    with pytest.raises(InvalidInputError, match="can't describe Odd"):
        schema_for(Odd)
