"""`TypedOutput`: the schema that the model gets, and the parsing of its answer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any

from msgspec import UNSET

from dragoman.agent.output.finding import Findings
from dragoman.agent.output.kinds import Kind, is_function, kind_of, union_of
from dragoman.agent.output.modes import Mode, checked_mode, mode_for
from dragoman.agent.output.previews import Preview, shortened
from dragoman.agent.output.roots import RESULT, is_plain_object, wrapped
from dragoman.agent.output.wording import TOOL_DESCRIPTION, TOOL_NAME, instruction
from dragoman.agent.reprs import Shown
from dragoman.errors import DragomanError
from dragoman.model.frozen import FrozenDict, freeze_mapping
from dragoman.model.functions.shapes import MisfitError
from dragoman.model.functions.tool import Tool
from dragoman.model.jsontext import dumps, loads
from dragoman.model.requests import Output
from dragoman.model.tools import ToolCall, ToolDefinition, make_definition
from dragoman.model.validation.problems import in_sentences, problems
from dragoman.model.value import expect
from dragoman.wire.dialect import dialect as spoken
from dragoman.wire.dialect import is_dialect
from dragoman.wire.schemas import projected
from dragoman.wire.target import Target

_DESCRIPTION_LENGTH = 1_024


class Misfit(DragomanError):  # noqa: N818 - says what happened, as the names in `errors` do
    """The answer is not a valid value; the text tells the model why, without quoting it."""


class Missing(Misfit):
    """The answer contains nothing that could be the value."""


class SentBack(Misfit):
    """The user's own function or hook has rejected the value, with its own message."""


class TypedOutput(Shown):
    """A type that the model's answer must have.

    >>> numbers = TypedOutput.of(list[int])
    >>> numbers.read('Here you are: {"result": [1, 2]}')
    [1, 2]
    """

    def __init__(self, kind: Kind, mode: Mode | None = None) -> None:
        self.mode: Mode | None = mode
        """The caller's choice; None: chosen by the model's capabilities."""
        self.is_wrapped = not is_plain_object(kind.schema)
        """Whether the value is wrapped in an object as `result`: a root must be an object."""
        self._kind = kind

    @classmethod
    def of(cls, kind: Any, mode: Mode | None = None) -> TypedOutput | None:
        """The typed output for a type, one of several types, a function or a JSON Schema.

        None for `str`, which is any text.

        Raises if the type can't be described in JSON Schema.
        """
        chosen = None if mode is None else checked_mode(mode)
        if isinstance(kind, (list, tuple)):
            kind = union_of(kind)
        if kind is None or kind is str:
            return None
        if isinstance(kind, TypedOutput):
            return kind if chosen is None else cls(kind._kind, chosen)
        return _remembered(kind, chosen)

    @property
    def function(self) -> Tool[..., Any, Any] | None:
        """Makes the output from the parsed value; None: the parsed value is the output."""
        return self._kind.function

    @cached_property
    def schema(self) -> FrozenDict:
        """The JSON Schema sent to the model; its root is an object."""
        return _wrapped(self._kind) if self.is_wrapped else self._kind.schema

    @cached_property
    def tool(self) -> ToolDefinition:
        """The tool that takes the value."""
        return self._tool(TOOL_NAME)

    def tool_beside(self, taken: Collection[str]) -> ToolDefinition:
        """The tool that takes the value, with a name that no other tool has."""
        name, number = TOOL_NAME, 1
        while name in taken:
            number += 1
            name = f"{TOOL_NAME}_{number}"
        return self.tool if name == TOOL_NAME else self._tool(name)

    def _tool(self, name: str) -> ToolDefinition:
        return make_definition(name, TOOL_DESCRIPTION, self.schema, strict=True)

    @cached_property
    def output(self) -> Output:
        """The output schema, for providers that enforce it."""
        said = self._kind.description
        return Output(
            format="schema",
            schema=self.schema,
            name=self._kind.name,
            description=None if said is None else said[:_DESCRIPTION_LENGTH],
            strict=True,
        )

    @cached_property
    def instruction(self) -> str:
        """The schema in words, for providers without a field for it."""
        return instruction(dumps(self.schema).decode("utf-8", "replace"))

    def mode_for(self, target: Target | None, *, has_tools: bool) -> Mode:
        """The mode for this target."""
        mode = mode_for(target, has_tools, self.mode)
        if mode == "native" and self.mode is None and target is not None:
            return mode if self._is_held_to(target.dialect) else "tool"
        return mode

    def _is_held_to(self, dialect: str) -> bool:
        """Whether the dialect can express the schema exactly.

        If all output schemas are strict, free property names, tuples and recursive types can't be
        expressed; a non-strict tool can still have them.
        """
        profile = spoken(dialect).output_profile if is_dialect(dialect) else None
        return profile is None or projected(self.schema, profile).is_faithful

    def preview(self) -> Preview:
        """A preview of the value while an answer streams."""
        return Preview(is_wrapped=self.is_wrapped)

    def partial(self, json: Any) -> tuple[Any, Any]:
        """The value that an incomplete answer gives, and the JSON that it was made from.

        That is as much of the answer as is valid: if necessary without the element that still
        grows. Both are unset if a required one is missing.
        """
        for part in shortened(json):
            value = self._read_form({RESULT: part} if self.is_wrapped else part)
            if not isinstance(value, _Complaint):
                return value, part
        return UNSET, UNSET

    # --- parsing

    def read(self, text: str) -> Any:
        """The value in an answer: all of it JSON, or JSON in a code fence, or among words.

        Takes the first value that is valid. Raises `Misfit`.
        """
        expect(text, str, "the answer")
        findings, worst = Findings(text), _Complaint("", -1)
        lenient: list[Any] = []
        for value, size in findings:
            outcome = self._outcome(value)
            if isinstance(outcome, _Complaint):
                worst = outcome.of_size(size) if size > worst.size else worst
            elif self._is_as_asked(value):
                return outcome
            else:  # an unwrapped value; a wrapped one may follow: "as in [1]: {…}"
                lenient.append(outcome)
        if lenient:
            return lenient[0]
        if worst.text:
            raise Misfit(worst.text)
        raise Missing(_unreadable(text, findings.problem))

    def _is_as_asked(self, value: Any) -> bool:
        return not self.is_wrapped or _has_result(value)

    def read_arguments(self, arguments: Mapping[str, Any]) -> Any:
        """The value in the arguments of a call to the tool. Raises `Misfit`."""
        outcome = self._outcome(arguments)
        if isinstance(outcome, _Complaint):
            raise Misfit(outcome.text)
        return outcome

    def read_call(self, call: ToolCall) -> Any:
        """The value in a call to the tool, also if its arguments are no object. Raises `Misfit`."""
        if call.kind == "custom" or not call.has_valid_arguments:
            return self.read(call.raw_arguments)
        return self.read_arguments(call.arguments)

    def _outcome(self, value: Any) -> Any:
        """The converted value, or a complaint."""
        complaints: list[_Complaint] = []
        for form in self._forms(value):
            outcome = self._read_form(form)
            if not isinstance(outcome, _Complaint):
                return outcome
            complaints.append(outcome)
        return complaints[0] if _has_result(value) else complaints[-1]

    def _forms(self, value: Any) -> Iterator[Any]:
        """The value as it is, or wrapped as requested."""
        if self._is_as_asked(value):
            yield value
        if self.is_wrapped:
            yield {RESULT: value}

    def _read_form(self, form: Any) -> Any:
        found = problems(self.schema, form)
        if found:
            return _Complaint(in_sentences(found))
        inner, path = (form[RESULT], f"$.{RESULT}") if self.is_wrapped else (form, "$")
        try:
            return self._kind.read(inner)
        except MisfitError as misfit:
            return _Complaint(f"{path}{misfit.path}: expected {misfit.expected}")
        except DragomanError as error:  # raised by a user's class that uses our errors
            return _Complaint(f"{path}: {error}")
        except RecursionError:
            return _Complaint(f"{path}: expected fewer levels, got more")
        except Exception as error:  # noqa: BLE001 - classes raise what they like, and may quote
            return _Complaint(f"{path}: expected another value ({type(error).__name__})")

    def _sizes(self) -> Iterator[str]:
        yield self._kind.name
        yield self.mode or "any mode"


def _remembered(kind: Any, mode: Mode | None) -> TypedOutput:
    """The typed output of a kind, cached."""
    if isinstance(kind, Mapping):
        return _of_text(dumps(freeze_mapping(kind, "the schema of the output")), mode)
    if is_function(kind):  # caching it would keep its bound object alive
        return TypedOutput(kind_of(kind), mode)
    try:
        # Unions are equal in any order, but the first matching member is used: the text tells them
        # apart.
        return _of_type(kind, repr(kind), mode)
    except TypeError:
        pass  # unhashable annotations
    return TypedOutput(kind_of(kind), mode)


@lru_cache(maxsize=256)
def _of_type(kind: Any, _text: str, mode: Mode | None) -> TypedOutput:
    return TypedOutput(kind_of(kind), mode)


@lru_cache(maxsize=256)
def _of_text(raw: bytes, mode: Mode | None) -> TypedOutput:
    return TypedOutput(kind_of(loads(raw)), mode)


class _Complaint:
    """Why a value is invalid; returned, not raised, because another value may be valid."""

    def __init__(self, text: str, size: int = 0) -> None:
        self.text = text
        self.size = size

    def of_size(self, size: int) -> _Complaint:
        """The same complaint, about a value of that length."""
        return _Complaint(self.text, size)


def _wrapped(kind: Kind) -> FrozenDict:
    return freeze_mapping(wrapped(kind.schema), "the schema of the output")


def _has_result(value: Any) -> bool:
    return isinstance(value, Mapping) and RESULT in value


def _unreadable(text: str, problem: str) -> str:
    if not text.strip():
        return "expected JSON, got no text at all"
    return f"expected JSON, got other text: {problem}"
