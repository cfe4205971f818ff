"""Output types: the schema for the model, and how its answer is read."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
from dataclasses import dataclass
from typing import Annotated, Any, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Message, Request
from dragoman.agent.output import wording
from dragoman.agent.output.modes import mode_for
from dragoman.agent.output.typed import Misfit, TypedOutput
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze
from dragoman.model.tools import ToolCall, make_call
from dragoman.model.validation.problems import problems
from tests.agent.output.kinds import KINDS, SCHEMA, City, Stay

DIALECTS = dragoman.dialects()
SECRET = "xylophone"


def typed(kind: Any) -> TypedOutput:
    """The output of a type that is not plain text."""
    output = TypedOutput.of(kind)
    assert output is not None
    return output


def wire(output: TypedOutput, plain: Any) -> Any:
    """A plain value in the form requested from the model."""
    return {"result": plain} if output.is_wrapped else plain


def complaint(output: TypedOutput, text: str) -> str:
    """The feedback that the model gets for an invalid text."""
    with pytest.raises(Misfit) as caught:
        output.read(text)
    assert caught.value.__cause__ is caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_every_kind_is_read(name: str) -> None:
    """From text, in a code fence, within prose, from arguments, and without its wrapper."""
    kind, value, plain = KINDS[name]
    output = typed(kind)
    text = json.dumps(wire(output, plain))
    assert output.schema["type"] == "object"
    assert problems(output.schema, wire(output, plain)) == []
    for said in (
        text,
        f"```json\n{text}\n```",
        f"As {{this}} or [1: {text} is it.",
        f"\ufeff{text}\n",
    ):
        assert output.read(said) == value
    assert type(output.read(text)) is type(value)
    assert output.read(json.dumps(plain)) == value
    assert output.read_arguments(freeze(wire(output, plain))) == value
    assert output.read_call(ToolCall("c", "return_result", raw=text)) == value


@pytest.mark.parametrize("name", sorted(KINDS))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_takes_every_kind(dialect: str, name: str) -> None:
    """Natively or as a tool, each is accepted, and the schema isn't weakened."""
    output, speaker = typed(KINDS[name][0]), dragoman.dialect(dialect)
    is_native = output.mode_for(speaker.target, has_tools=False) == "native"
    fields: dict[str, Any] = {"output": output.output} if is_native else {"tools": (output.tool,)}
    made = speaker.encode_request(Request(model="m", messages=(Message.user("Hi"),), **fields))
    found = speaker.check(json.loads(made.to_bytes()))
    assert [each for each in found if each.severity == "error"] == []
    bent = ("undeclared properties", "tuple positions", "merged", "put around")
    reasons = [loss.reason for loss in made.losses]
    assert not [reason for reason in reasons if any(words in reason for words in bent)]


def test_open_dicts_use_a_tool_if_native_schemas_are_always_strict() -> None:
    """Claude's native output doesn't allow arbitrary keys, so a tool is used."""
    claude, openai = (dragoman.dialect(name).target for name in ("anthropic", "openai-chat"))
    assert typed(dict[str, int]).mode_for(claude, has_tools=False) == "tool"
    assert typed(City).mode_for(claude, has_tools=False) == "native"
    assert typed(dict[str, int]).mode_for(openai, has_tools=False) == "native"


def test_text_is_not_typed_output() -> None:
    """`str` and None mean the model's text."""
    assert TypedOutput.of(str) is None
    assert TypedOutput.of(None) is None


@pytest.mark.parametrize("kind", [1, "int", object(), [1], len, {1: 2}, complex, lambda *all: all])
def test_unsupported_types_are_rejected(kind: Any) -> None:
    """Types that JSON can't describe are rejected with our own error."""
    with pytest.raises(InvalidInputError):
        TypedOutput.of(kind)


def test_modes_are_checked_and_kept() -> None:
    """An explicit mode takes precedence over the target's default."""
    output = TypedOutput.of(int, "two_phase")
    assert output is not None
    assert output.mode_for(None, has_tools=False) == "two_phase"
    again = TypedOutput.of(output, "native")
    assert again is not None
    assert again.mode == "native"
    assert TypedOutput.of(output) is output
    with pytest.raises(InvalidInputError):
        TypedOutput.of(int, "magic")  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    ("changes", "has_tools", "mode"),
    [
        ({}, False, "native"),
        ({}, True, "native"),
        ({"schemas.refuses_json_with_tools": True}, True, "two_phase"),
        ({"schemas.refuses_json_with_tools": True}, False, "native"),
        ({"schemas.outputs": ("text", "json")}, True, "tool"),
        ({"schemas.outputs": ("text",), "schemas.refuses_json_with_tools": True}, True, "tool"),
    ],
)
def test_the_mode_depends_on_the_target(changes: Any, has_tools: bool, mode: str) -> None:
    """Native if possible, in two phases if tools exclude it, else through a tool."""
    target = dragoman.dialect("gemini").target.with_flags(changes)
    assert mode_for(target, has_tools) == mode
    assert mode_for(None, has_tools) == "tool"
    assert mode_for(target, has_tools, "tool") == "tool"


def test_the_output_tool_avoids_name_conflicts() -> None:
    """A user's tool keeps its name, and ours gets another."""
    output = typed(City)
    assert output.tool.name == "return_result"
    assert output.tool.strict is True
    assert output.tool_beside(["weather"]) is output.tool
    taken = ["return_result", "return_result_2"]
    assert output.tool_beside(taken).name == "return_result_3"


def test_names_and_descriptions() -> None:
    """The schema's name is valid for every provider, and the description is the author's."""
    assert (typed(City).output.name, typed(City).output.description) == ("City", "A city.")
    assert (typed(SCHEMA).output.name, typed(SCHEMA).output.description) == (
        "A_total",
        "The total.",
    )
    assert typed(list[int]).output.name == "result"


def test_the_order_of_a_union_matters() -> None:
    """`str | datetime` and its reverse are equal in Python, but are read differently."""
    text = '{"result": "2024-05-31T00:00:00Z"}'
    assert typed(str | dt.datetime).read(text) == "2024-05-31T00:00:00Z"
    assert typed(dt.datetime | str).read(text) == dt.datetime(2024, 5, 31, tzinfo=dt.UTC)


def test_unhashable_annotations() -> None:
    """They are accepted as well."""
    assert typed(Annotated[int, ["a"]]).read("3") == 3


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (list[int], f'{{"result": ["{SECRET}"]}}', "$.result[0]: expected an integer, got string"),
        (City, f'{{"name": "{SECRET}"}}', "$.people: expected an integer, got nothing"),
        (City, f'{{"name": 1, "people": 2, "{SECRET}": 3}}', "got 1 more"),
        (int, f'{{"result": 1, "{SECRET}": 2}}', "only these properties: result"),
        (int, SECRET, "expected JSON, got other text"),
        (int, " ", "got no text at all"),
        (list[float], '{"result": [NaN]}', "out of range"),
        (list[float], '{"result": [1e999]}', "out of range"),
        (int, "9" * 5_000, "out of range"),
        (dict[str, Any], '{"a": ' * 200 + "1" + "}" * 200, "deeper than 100 levels"),
        (SCHEMA, '{"total": -1}', "a number of at least 0"),
    ],
)
def test_mismatches_are_reported_without_the_value(kind: Any, text: str, words: str) -> None:
    """Path, expected type and actual type are reported, and never the value."""
    said = complaint(typed(kind), text)
    assert words in said
    assert SECRET not in said


def test_messages_of_validators_reach_the_model() -> None:
    """The text of a custom validator is sent, without the values that it quotes."""
    stay = {"first": "2024-05-31", "last": "2024-05-30", "guest": SECRET}
    for output in (typed(Stay), typed(Stay | None)):
        said = complaint(output, json.dumps(wire(output, stay)))
        assert "last must not be before first, but … wants …" in said
        assert SECRET not in said


@dataclass
class Even:
    """A class with a rule of its own."""

    number: int
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse odd numbers."""
        if self.number % 2:
            msg = f"number must be even ({self.note!r})"
            raise ValueError(msg)


class Picky(str):
    """A text that refuses some."""

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Refuse all."""
        raise LookupError(text)


def test_exceptions_of_user_classes_are_contained() -> None:
    """They are caught, and their text is not repeated."""
    said = complaint(typed(Even), json.dumps({"number": 3, "note": SECRET}))
    assert "number must be even (…)" in said
    said = complaint(typed(Picky), json.dumps(SECRET))
    assert "LookupError" in said
    assert SECRET not in said


def test_the_first_valid_value_is_taken() -> None:
    """Among several values in a text; a wrapped value takes precedence."""
    assert typed(City).read(
        '[1] {"a": 2} {"name": "A", "people": 1} {"name": "B", "people": 2}'
    ) == (City("A", 1))
    assert typed(list[int]).read('See [1]: {"result": [2, 3]}') == [2, 3]
    assert typed(list[int]).read("See [1].") == [1]


def test_of_duplicate_keys_the_last_wins() -> None:
    """As in Python's `json`."""
    assert typed(int).read('{"result": 1, "result": 2}') == 2


def test_calls_whose_arguments_are_not_an_object() -> None:
    """They are read like an answer."""
    assert typed(list[int]).read_call(make_call("c", "return_result", raw="[1, 2]")) == [1, 2]
    with pytest.raises(Misfit):
        typed(list[int]).read_call(make_call("c", "return_result", raw="{oops"))


@pytest.mark.parametrize(
    "text", ["[" * 10_000_000, "[1" * 2_000_000, '{"a' * 2_000_000, "[1] " * 99]
)
def test_hostile_texts_are_rejected(text: str) -> None:
    """However long or deep, the feedback is one sentence."""
    assert len(complaint(typed(City), text)) < 300


@given(st.text() | st.text('{}[]",:1`\\ '))
def test_any_text_is_read_or_rejected(text: str) -> None:
    """No other exception is raised."""
    with contextlib.suppress(Misfit):
        assert isinstance(typed(list[int]).read(text), list)


def test_the_feedback_to_the_model() -> None:
    """It lists the problems, what to do, and the tool's name."""
    problem = "$.people: expected an integer, got nothing"
    assert problem in wording.feedback(problem)
    assert problem in wording.tool_feedback(problem, "return_result_2")
    assert "`return_result_2`" in wording.tool_feedback(problem, "return_result_2")
    assert "`return_result_2`" in wording.reminder("return_result_2")
    assert json.loads(typed(City).instruction.split("\n", 1)[1]) == typed(City).schema
    assert SECRET not in repr(typed(City))
