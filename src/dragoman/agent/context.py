"""What a tool may know about the run it is called in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from dragoman.agent.reprs import Shown, made_by_alias
from dragoman.model.collection import Messages
from dragoman.model.functions.injection import Injected
from dragoman.model.tools import ToolCall
from dragoman.model.type_parameters import TypeVar
from dragoman.model.usage import Usage

DepsT_co = TypeVar("DepsT_co", default=Any, covariant=True)


@made_by_alias
@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class RunContext(Shown, Injected, Generic[DepsT_co]):
    """The run that a tool, a hook or a system prompt is called in.

    ```python
    @tool
    async def order(number: int, run: RunContext[Database]) -> str:
        \"\"\"Look an order up.\"\"\"
        return await run.deps.order(number)
    ```

    The model never hears of such a parameter: whatever has this type is filled in. Type checkers
    see to it that tools, hooks and instructions of an `Agent[Deps]` want no other `deps`.
    """

    deps: DepsT_co
    """What the caller gave as `deps`."""
    run_id: str = ""
    model: str = ""
    """The model's name."""
    step: int = 0
    """How often the model has been asked so far."""
    messages: Messages = field(default_factory=Messages)
    """The conversation as it was sent last."""
    usage: Usage = field(default_factory=Usage)
    """What the run has used so far."""
    call: ToolCall | None = None
    """The call that is being answered."""
    run: Any = field(default=None, compare=False)
    """The run itself, for calls of other agents within it: `agent.send(…, within=context)`."""

    def for_call(self, call: ToolCall) -> RunContext[DepsT_co]:
        """The same run, at one of its calls."""
        return replace(self, call=call)

    def _sizes(self) -> Iterator[str]:
        yield self.model
        yield f"step {self.step}"


Context = RunContext[Any]
