"""The cost of schemas: work is counted in steps, and too much raises an error.

Nothing here measures time. That steps measure the work is verified by counting Python's function
calls.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

import dragoman
from dragoman import DragomanError, Message, Request, ToolDefinition
from dragoman.errors import InvalidInputError
from dragoman.model.frozen import freeze_mapping
from dragoman.model.requests import Output
from dragoman.model.validation.budget import Budget, TooManyStepsError
from dragoman.model.validation.problems import Validation, problems
from dragoman.wire.schemas import PROFILES, projected, projection
from dragoman.wire.schemas.projection import BYTES_PER_STEP, MAX_STEPS
from tests.corpus import Corpus
from tests.wire.schemas.hostile import FAMILIES, Schema
from tests.wire.schemas.samples import of_types, recorded
from tests.wire.test_schemas_in_requests import tool

_NAMES = sorted(PROFILES)
_SMALL = 20
_FEW = 4_000
"""Steps, where it takes too long to spend all."""
_LINEAR = (
    *("chain", "crowd", "anchors", "pointers", "branches", "choices", "alike", "forms"),
    *("properties", "required", "missing", "literals", "places", "patterns", "doubling_objects"),
)
"""Families that every target can be told, at any size."""
_INLINED = ("gemini-parameters", "ollama")
"""Profiles without references, for which definitions are written out."""


projected({"type": "object"}, PROFILES["openai-strict"])  # imports the compiler first
ToolDefinition.create("f", "F.", {"type": "object"})


@pytest.fixture
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A smaller limit than the real one, so that schemas are refused sooner."""
    monkeypatch.setattr(projection, "MAX_STEPS", _FEW)


def _calls(work: Callable[[], object]) -> int:
    """The number of function calls that some work makes."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def _is_refused(error: InvalidInputError) -> bool:
    return "the schema is too complex" in str(error)


def _work(schema: Schema, name: str) -> tuple[int, int]:
    """The calls and steps that a schema takes; if it is refused, all available steps."""
    steps: list[int] = []
    projection._known_texts.clear()  # pyright: ignore[reportPrivateUsage]  # what is known is no work

    def project() -> None:
        try:
            steps.append(projected(schema, PROFILES[name]).cost.steps)
        except InvalidInputError as error:
            if not _is_refused(error):
                raise
            steps.append(_FEW + len(json.dumps(schema)) // BYTES_PER_STEP)

    return _calls(project), steps[0]


def test_the_cache_of_schemas_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many large schemas come, the cached ones have a limited total size."""
    monkeypatch.setattr(projection, "_MAX_CACHED_BYTES", 40_000)
    known = projection._known, projection._known_texts  # pyright: ignore[reportPrivateUsage]
    for memory in known:
        memory.clear()
    for at in range(100):
        names = [f"p{at}_{each}" for each in range(at)]
        schema = freeze_mapping({"type": "object", "properties": {key: {} for key in names}})
        for name in _NAMES:
            projected(schema, PROFILES[name])
        for memory in known:
            entries = memory._found  # pyright: ignore[reportPrivateUsage]
            kept = [value[1] if isinstance(value, tuple) else value for value in entries.values()]
            assert sum(made.cost.size for made in kept) <= 40_000
            assert kept


@pytest.mark.thorough
@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_steps_measure_the_work(family: str, name: str) -> None:
    """No schema makes many function calls in few steps."""
    for n in (_SMALL // 2, 2 * _SMALL):
        schema = FAMILIES[family](n)
        calls, steps = _work(schema, name)
        assert calls < 40 * steps + 2 * len(json.dumps(schema)) + 2000


@pytest.mark.thorough
@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("family", _LINEAR)
def test_work_is_linear_in_the_schema(family: str, name: str) -> None:
    """Four times the size takes four times the work."""
    if family == "doubling_objects" and name in _INLINED:
        pytest.skip("written out, it doubles at every step; it is refused")
    small, large = FAMILIES[family](_SMALL), FAMILIES[family](4 * _SMALL)
    (calls, steps), (more_calls, more_steps) = _work(small, name), _work(large, name)
    grown = max(4, len(json.dumps(large)) / len(json.dumps(small)))
    assert more_steps <= 1.3 * grown * steps + 500
    assert more_calls <= 1.3 * grown * calls + 5000


@pytest.mark.thorough
@pytest.mark.parametrize("name", _NAMES)
def test_large_simple_schemas_are_accepted(name: str) -> None:
    """Eight thousand alternatives and sixteen thousand properties take linear work."""
    for schema in (FAMILIES["branches"](8_000), FAMILIES["properties"](16_000)):
        assert projected(schema, PROFILES[name]).cost.excess < MAX_STEPS


def test_plain_properties_take_few_steps() -> None:
    """A property that has only a type is checked, not compiled."""
    schema = FAMILIES["properties"](1_000)
    for profile in PROFILES.values():
        assert projected(schema, profile).cost.steps < 3 * 1_000


@pytest.mark.parametrize("name", ["gemini-parameters", "openai-strict"])
def test_odd_properties_take_limited_steps(name: str) -> None:
    """A schema of 200 KB in which every property needs work is refused in a fraction of a second.

    It once took three seconds.
    """
    schema = {"type": "object", "properties": {f"p{at}": {} for at in range(20_000)}}
    try:
        steps = projected(schema, PROFILES[name]).cost.steps
    except InvalidInputError as error:
        if not _is_refused(error):
            raise
        steps = MAX_STEPS + len(json.dumps(schema)) // BYTES_PER_STEP
    assert steps < 200_000


def test_usual_schemas_use_no_budget(corpus: Corpus) -> None:
    """Recorded tools and usual types, all together, take less than 2% of a request's budget."""
    schemas = [one.schema for one in recorded(corpus)] + [schema for _, schema in of_types()]
    assert len(schemas) > 100
    for profile in PROFILES.values():
        assert sum(projected(schema, profile).cost.excess for schema in schemas) < MAX_STEPS / 50


# --- one budget for a request


def _heavy(least: int, most: int, name: str) -> Schema:
    """A schema that takes a part of a request's budget."""
    for n in range(1, 200):
        schema = FAMILIES["shared"](n)
        if least < projected(schema, PROFILES[name]).cost.excess < most:
            return schema
    raise AssertionError(name)


@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize("dialect", ["openai-responses", "openai-chat"])
def test_all_schemas_of_a_request_share_one_budget(dialect: str) -> None:
    """Four tools that are fine alone are too much together, cached or not."""
    schema = _heavy(_FEW // 3, _FEW // 2, "openai-strict")
    tools = [tool({**schema, "title": f"Number {at}"}, f"f{at}", strict=True) for at in range(4)]
    speaker = dragoman.dialect(dialect)
    request = Request(model="m", messages=(Message.user("Hi"),), tools=tuple(tools))
    for _ in range(2):
        with pytest.raises(
            InvalidInputError, match=r"^tools\[[23]\]\.parameters: the schema is too complex"
        ):
            speaker.encode_request(request)
    speaker.encode_request(request.replace(tools=request.tools[:1]))


@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize("dialect", ["openai-responses", "openai-chat", "anthropic"])
def test_the_error_names_the_output_schema(dialect: str) -> None:
    """It has the path, and no content."""
    output = Output(format="schema", schema=FAMILIES["square"](100), strict=True)
    request = Request(model="m", messages=(Message.user("Hi"),), output=output)
    with pytest.raises(InvalidInputError, match=r"^output\.schema: the schema is too complex"):
        dragoman.dialect(dialect).encode_request(request)


def _bodies(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """A request in every dialect, with the schema in every possible place."""
    said = [{"role": "user", "content": "Hi"}]
    function = {"name": "f", "parameters": schema, "strict": True}
    form = {"name": "x", "schema": schema, "strict": True}
    yield "openai-chat", {
        "model": "m", "messages": said, "tools": [{"type": "function", "function": function}],
        "response_format": {"type": "json_schema", "json_schema": form},
    }  # fmt: skip
    yield "openai-responses", {
        "model": "m", "input": said, "tools": [{"type": "function", **function}],
        "text": {"format": {"type": "json_schema", **form}},
    }  # fmt: skip
    yield "anthropic", {
        "model": "m", "messages": said, "max_tokens": 5,
        "tools": [{"name": "f", "input_schema": schema, "strict": True}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }  # fmt: skip
    yield "ollama", {
        "model": "m", "messages": said, "format": schema,
        "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
    }  # fmt: skip
    declarations = [
        {"name": "f", "parameters": schema},
        {"name": "g", "parametersJsonSchema": schema},
    ]
    yield "gemini", {
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": declarations}],
        "generationConfig": {"responseMimeType": "application/json", "responseSchema": schema},
    }  # fmt: skip


_TARGETS = (*dragoman.dialects(), "google:gemini-1.5-pro", "groq", "mistral")


@pytest.mark.thorough
@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_requests_with_hostile_schemas(family: str) -> None:
    """Decoding, checking and encoding takes bounded work or raises our own error."""
    schema = FAMILIES[family](_SMALL // 2)
    size = len(json.dumps(schema))

    def everything(source: str, body: Schema) -> None:
        dragoman.dialect(source).check(body, path="/v1beta/models/m:generateContent")
        for target in _TARGETS:
            try:
                dragoman.translate(body, source=source, target=target)
            except DragomanError:
                continue

    for source, body in _bodies(schema):
        calls = _calls(partial(everything, source, body))
        assert calls < len(_TARGETS) * (2 * 40 * _FEW + 400 * size)


# --- validation

_VALUES: dict[str, Callable[[int], Any]] = {
    "null": lambda _: {"a": None},
    "text": lambda n: {"a": "x" * n},
    "objects": lambda n: {"a": [{"x": str(at)} for at in range(n)]},
    "properties": lambda n: {"a": {f"p{at}": at for at in range(n)}, "p0": [1] * n},
}


@pytest.mark.thorough
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_steps_measure_the_work_of_validation(family: str) -> None:
    """Validating against a hostile schema takes no more calls than steps allow."""
    for made in _VALUES.values():
        schema, value, budget = FAMILIES[family](_SMALL), made(4 * _SMALL), Budget(_FEW)

        def check(schema: Any = schema, value: Any = value, budget: Budget = budget) -> None:
            try:
                Validation(schema, budget).holds(schema, value)
            except TooManyStepsError:
                return

        assert _calls(check) < 60 * budget.spent + 3000


@pytest.mark.parametrize("keyword", ["anyOf", "allOf", "oneOf"])
def test_references_are_validated_once(keyword: str) -> None:
    """Forty definitions that each refer to the next one twice take linear work."""
    definitions: Schema = {
        f"d{at}": {keyword: [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(40)
    }
    schema = {"$ref": "#/$defs/d0", "$defs": {**definitions, "d40": {"type": "string"}}}
    for value in ("x", 5):
        budget = Budget()
        Validation(schema, budget).holds(schema, value)
        assert budget.spent < 40 * 40


def test_numbers_with_equal_hashes() -> None:
    """A long enum of numbers with hash collisions is looked up fast."""
    values = [at * (2**61 - 1) for at in range(5_000)]
    assert problems({"enum": values}, values[-1]) == []
    assert problems({"enum": values}, 1)
    assert problems({"enum": [1, 2**80]}, 1.0) == []
    assert problems({"enum": [1]}, True)
    found = Validation(True)
    assert len({found.canonical(value) for value in values}) == len(values)
    assert all(isinstance(found.canonical(value)[1], str) for value in values)


_PATTERNS = ["(a+)+$", "(a|a)*b", "(a|aa)+$", "a{4000}", "(.*)*x", "([a-z]+)*1", "(a?){50}a{50}"]


@pytest.mark.parametrize("pattern", _PATTERNS)
def test_catastrophic_patterns(pattern: str) -> None:
    """No pattern makes matching expensive, alone or for many texts."""
    budget = Budget(_FEW)
    schema = {"items": {"pattern": pattern}, "propertyNames": {"pattern": pattern}}
    texts = ["a" * 2_000 + "!"] * 20

    def check() -> None:
        try:
            Validation(schema, budget).holds(schema, texts)
        except TooManyStepsError:
            return

    assert _calls(check) < 60 * budget.spent + 10_000


# --- restoring


@pytest.mark.usefixtures("_few_steps")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_restoring_takes_bounded_work(family: str) -> None:
    """An answer to a hostile schema is restored, or left unchanged, in bounded work."""
    try:
        made = projected(FAMILIES[family](_SMALL), PROFILES["openai-strict"])
    except InvalidInputError:
        return
    for value in _VALUES.values():
        assert _calls(partial(made.undo, value(4 * _SMALL))) < 1_000_000


def test_values_that_take_too_long_to_restore_are_unchanged() -> None:
    """Nothing is raised, and no value is partly restored."""
    names = [f"p{at}" for at in range(200)]
    forms = [
        {"type": "object", "properties": {**{name: {"type": "string"} for name in names},
         "z": {"const": at}}, "required": [*names]} for at in range(60)
    ]  # fmt: skip
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"anyOf": forms}}}}
    made = projected(schema, PROFILES["openai-strict"])
    value = {"a": [{**dict.fromkeys(names, "x"), "z": None} for _ in range(2_000)]}
    assert made.undo(value) in (value, {"a": [dict.fromkeys(names, "x")] * 2_000})


# --- construction


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_tools_are_validated_in_linear_work(family: str, strict: bool) -> None:
    """Checking that a tool's parameters are a JSON Schema takes linear work."""
    small, large = FAMILIES[family](_SMALL), FAMILIES[family](4 * _SMALL)

    def made(schema: Schema) -> int:
        return _calls(partial(ToolDefinition.create, "f", "F.", schema, strict=strict))

    grown = len(json.dumps(large)) / len(json.dumps(small))
    assert made(large) < 2 * max(4, grown) * made(small) + 1000


@pytest.mark.parametrize("key", ["properties", "items", "anyOf", "not", "x-own"])
def test_deep_schemas_raise_our_error(key: str) -> None:
    """Nesting deeper than any stack is refused for tools and outputs."""
    schema: Any = {"type": "string"}
    for _ in range(5_000):
        schema = {key: [schema] if key == "anyOf" else {"a": schema} if key[0] in "px" else schema}
    with pytest.raises(InvalidInputError):
        ToolDefinition.create("f", "F.", schema)
    with pytest.raises(InvalidInputError):
        Output(format="schema", schema=schema)
    assert problems(schema, {"a": 1}) is not None


# --- depth, and odd references


@pytest.mark.thorough
@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_long_chains_at_the_root(keyword: str, name: str) -> None:
    """Nested alternatives by references are handled or refused at any depth."""
    definitions: Schema = {
        f"d{at}": {"type": "object", keyword: [{"$ref": f"#/$defs/d{at + 1}"}]}
        for at in range(2000)
    }
    definitions["d2000"] = {"type": "object", "properties": {"x": {"type": "string"}}}
    schema = {"type": "object", keyword: [{"$ref": "#/$defs/d0"}], "$defs": definitions}
    try:
        projected(schema, PROFILES[name]).undo({"x": None})
    except InvalidInputError as error:
        if not _is_refused(error):
            raise


@pytest.mark.parametrize("name", _NAMES)
@pytest.mark.parametrize("step", ["9" * 5_000, "-1", "٣", "01", "1.0", ""])
def test_references_into_lists(step: str, name: str) -> None:
    """An invalid index resolves to nothing."""
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": f"#/properties/b/anyOf/{step}"}, "b": {"anyOf": [True, {}]}},
    }
    projected(schema, PROFILES[name])
    assert problems(schema, {"a": 1}) == []
