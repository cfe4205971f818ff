"""What a call of an agent gives back: a result, or chunks that add up to one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic

from msgspec import UNSET

from dragoman.agent.reprs import Shown, made_by_alias
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
    """What came of a call: its output, and everything that is new in the conversation."""

    id: str
    """The run's own id, unique."""
    output: OutT_co
    """The answer: its text, or a value of the type that was asked for."""
    text: str = ""
    """All that the model said in this call, a line break between messages."""
    messages: Messages = field(default_factory=Messages)
    """The new messages, the prompt included, and no old ones."""
    usage: Usage | None = None
    """What all requests of this call took together; None where no provider said."""
    cost: Decimal | None = None
    """In US dollars; None where a price or a count is not known."""
    finish: FinishReason | None = None
    """Why the last answer ended."""
    metadata: Mapping[str, Any] = EMPTY
    """`thinking`, where the model showed some; `response_id` and `model` of the last answer;
    `omitted`, where messages of the history did not fit into the last request: how many."""
    deferred: tuple[ToolCall, ...] = ()
    """Calls that wait for the caller: for approval, or because the caller runs these tools."""
    steps: int = 0
    """How often the model was asked."""
    agent: str = ""
    """Who answered, where the conversation was handed over: the name; empty: nobody else."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """As `finish`."""
        return self.finish

    @property
    def thinking(self) -> str:
        """What the model showed of its thinking."""
        return str(self.metadata.get("thinking", ""))

    def _repr_markdown_(self) -> str:
        """The new messages, for notebooks."""
        from dragoman.model.markdown import markdown

        return markdown(self.messages)

    def _sizes(self) -> Iterator[str]:
        yield from name_shown(self.metadata.get("model"))
        yield f"{len(self.messages)} messages"
        yield type(self.output).__name__
        if self.finish:
            yield self.finish.value
        if self.deferred:
            yield f"{len(self.deferred)} deferred"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Chunk(Shown):
    """A piece of a result: what is new since the chunk before. Nothing is said twice."""

    output: str = ""
    """More of the text."""
    messages: Messages = field(default_factory=Messages)
    """Messages that are complete now."""
    metadata: Mapping[str, Any] = EMPTY
    """`thinking`: more of it."""
    partial: Any = UNSET
    """The typed output as far as it has come; plain JSON values, not yet checked."""
    id: str = ""
    usage: Usage | None = None
    """On the last chunk: what all requests took together."""
    finish: FinishReason | None = None
    """On the last chunk: why the answer ended."""

    @property
    def finish_reason(self) -> FinishReason | None:
        """As `finish`."""
        return self.finish

    def _sizes(self) -> Iterator[str]:
        yield f"{len(self.output)} chars"
        yield f"{len(self.messages)} messages"
        if self.finish:
            yield self.finish.value
