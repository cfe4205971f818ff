"""`Response`: what a model returned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from dragoman.errors import InvalidInputError
from dragoman.model.frozen import EMPTY
from dragoman.model.messages import Message
from dragoman.model.tools import ToolCall
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import (
    Value,
    expect,
    expect_fields,
    expect_number,
    name_shown,
    own,
    own_mapping,
    own_tuple,
)

_USAGE = frozenset({Usage, type(None)})


class Choice(Value, frozen=True):
    """One of the alternatives in a response."""

    index: int
    """Its position among the choices."""
    message: Message
    """The message."""
    finish: FinishReason | None = None
    """Why the model stopped."""
    finish_raw: str | None = None
    """The provider's own finish reason."""
    logprobs: Any = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        # Runs for every response: the most frequent values pass quickly.
        if type(self.index) is not int or type(self.message) is not Message:
            expect(self.index, int, "Choice.index")
            expect(self.message, Message, "Choice.message")
        if (self.finish is not None and type(self.finish) is not FinishReason) or (
            self.finish_raw is not None and type(self.finish_raw) is not str
        ):
            expect_fields(self, finish=FinishReason, finish_raw=str)
        if self.logprobs is not None:
            own(self, "logprobs")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    def settle(self) -> None:
        """Assigns the message's id."""
        self.message.settle()

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.index, self.message, self.finish, self.logprobs)

    def _sizes(self) -> Iterator[str]:
        yield repr(self.message)
        if self.finish:
            yield self.finish.value


class Response(Value, frozen=True, kw_only=True):
    """A model's response: usually one choice, and its usage."""

    choices: tuple[Choice, ...] = ()
    """The generated alternatives."""
    usage: Usage | None = None
    """The tokens used; `None` if the provider did not report them."""
    model: str | None = None
    """The model that responded, as the provider names it."""
    id: str | None = None
    """The provider's id of the response."""
    created_at: float | None = None
    """Unix time, in seconds."""
    extras: Mapping[str, Any] = EMPTY
    """Wire fields that no other field covers, keyed by dialect."""

    def __post_init__(self) -> None:
        own_tuple(self, "choices", Choice)
        if not (type(self.usage) in _USAGE and type(self.model) is str and type(self.id) is str):
            expect_fields(self, usage=Usage, model=str, id=str)
        if self.created_at is not None:
            expect_number(self.created_at, "Response.created_at")
        if self.extras is not EMPTY:
            own_mapping(self, "extras")

    @property
    def message(self) -> Message:
        """The message of the first choice; raises if there are no choices."""
        if not self.choices:
            msg = "the response has no choices, so it has no message"
            raise InvalidInputError(msg)
        return self.choices[0].message

    @property
    def text(self) -> str:
        """The text of the first choice, or `""`."""
        return self.choices[0].message.text if self.choices else ""

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the first choice."""
        return self.choices[0].message.tool_calls if self.choices else ()

    @property
    def finish(self) -> FinishReason | None:
        """Why the first choice ended."""
        return self.choices[0].finish if self.choices else None

    def settle(self) -> None:
        """Assigns the messages' ids."""
        for choice in self.choices:
            choice.message.settle()

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.choices,)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.model)
        yield from name_shown(self.id)
        yield from (repr(choice) for choice in self.choices)


class Embedding(Value, frozen=True):
    """The embedding vector of a text."""

    vector: tuple[float, ...]
    index: int = 0
    model: str | None = None
    usage: Usage | None = None
    extras: Mapping[str, Any] = EMPTY

    def __post_init__(self) -> None:
        own_tuple(self, "vector", (int, float))
        try:
            is_finite = all(map(isfinite, self.vector))  # thousands of numbers: a single pass
        except OverflowError:
            is_finite = False
        if not is_finite:
            msg = "Embedding.vector must contain finite numbers only"
            raise InvalidInputError(msg)
        own_mapping(self, "extras")

    def _compared_fields(self) -> tuple[Any, ...]:
        return (self.vector, self.index)

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.vector)} dimensions"
