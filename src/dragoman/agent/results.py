"""Results of an agent's call: a `Result`, or chunks that add up to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, Generic

from msgspec import UNSET

from dragoman.agent.reprs import Shown, made_by_alias
from dragoman.errors import ToolError
from dragoman.model.collection import Messages
from dragoman.model.frozen import EMPTY
from dragoman.model.tools import ToolCall
from dragoman.model.type_parameters import TypeVar
from dragoman.model.usage import FinishReason, Usage
from dragoman.model.value import name_shown

OutT_co = TypeVar("OutT_co", default=Any, covariant=True)


@made_by_alias
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Result(Shown, Generic[OutT_co]):
    """The result of a call: its output, and the new messages of the conversation."""

    id: str
    """The unique id of the run."""
    output: OutT_co
    """The answer: its text, or a value of the requested type. Raises `ToolError` if there is no
    value of that type, because the run waits for the calls in `deferred`, or was stopped."""
    text: str = ""
    """All text of the model in this call, with a newline between messages."""
    messages: Messages = field(default_factory=Messages)
    """The new messages, including the prompt."""
    usage: Usage | None = None
    """Total usage of all requests of this call; None if no provider reported it."""
    cost: Decimal | None = None
    """Cost in US dollars; None if a price or a token count is unknown."""
    finish: FinishReason | None = None
    """Why the last response ended."""
    metadata: Mapping[str, Any] = EMPTY
    """`thinking`, if the model returned some; `response_id` and `model` of the last response;
    `omitted`: the number of history messages that did not fit into the last request, if any."""
    deferred: tuple[ToolCall, ...] = ()
    """Calls that wait for the caller: for approval, or because the caller runs these tools."""
    steps: int = 0
    """Number of requests to the model."""
    agent: str = ""
    """The name of the agent that answered: after a handoff, that of the handoff; empty if it has
    none."""

    @property
    def has_output(self) -> bool:
        """Whether there is an output; a typed run that waits for a tool call has none."""
        return self._value("output") is not UNSET

    @property
    def finish_reason(self) -> FinishReason | None:
        """Same as `finish`."""
        return self.finish

    @property
    def thinking(self) -> str:
        """The thinking that the model returned."""
        return str(self.metadata.get("thinking", ""))

    def _repr_markdown_(self) -> str:
        """The new messages, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown(self.messages)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.metadata.get("model"))
        yield f"{len(self.messages)} messages"
        yield type(self.output).__name__ if self.has_output else "no output"
        if self.finish:
            yield self.finish.value
        if self.deferred:
            yield f"{len(self.deferred)} deferred"

    def _value(self, name: str) -> Any:
        return _stored_output(self) if name == "output" else getattr(self, name)

    # Copies and comparisons must not raise for a result without an output.

    def _values(self) -> list[Any]:
        return [self._value(each.name) for each in fields(self)]

    # Not `__getstate__`, which the first releases of Python 3.11 overwrite in such a dataclass.
    def __reduce__(self) -> tuple[Any, ...]:
        return object.__new__, (type(self),), self._values()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result) or type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]  # it contains dicts


# Replace the field's descriptor with one that raises if there is no output: an output of another
# type than the requested one would be found much later, or never.
_output_slot: Any = Result.__dict__["output"]
_stored_output = _output_slot.__get__


def _read_output(result: Result[Any]) -> Any:
    """The answer: its text, or a value of the requested type."""
    output = _stored_output(result)
    if output is not UNSET:
        return output
    if result.deferred:
        number = len(result.deferred)
        calls = "a tool call waits" if number == 1 else f"{number} tool calls wait"
        msg = f"there is no output yet: {calls} in `deferred` for your decision or result"
    else:
        msg = "the run was stopped before there was an output of the requested type"
    raise ToolError(msg)


type.__setattr__(Result, "output", property(_read_output, _output_slot.__set__))


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Chunk(Shown):
    """A piece of a result: what is new since the previous chunk, without repetition."""

    output: str = ""
    """More text."""
    messages: Messages = field(default_factory=Messages)
    """Newly completed messages."""
    metadata: Mapping[str, Any] = EMPTY
    """`thinking`: more of it."""
    partial: Any = UNSET
    """The typed output so far, as a value of the requested type; unset unless there is a new one:
    what was received must be valid, if necessary without the element that still grows."""
    partial_json: Any = UNSET
    """The typed output so far, as plain JSON values, not validated; unset if nothing is new."""
    id: str = ""
    usage: Usage | None = None
    """On the last chunk: total usage of all requests."""
    finish: FinishReason | None = None
    """On the last chunk: why the response ended."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """Same as `finish`."""
        return self.finish

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.output)} chars"
        yield f"{len(self.messages)} messages"
        if self.finish:
            yield self.finish.value
