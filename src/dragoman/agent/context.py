"""`RunContext`: the run that a tool or hook is called in."""

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

    A parameter of this type is filled in automatically, and is not part of the tool's schema. Type
    checkers verify that the tools, hooks and system prompt of an `Agent[Deps]` use the same `deps`.
    """

    deps: DepsT_co
    """The `deps` of the call."""
    run_id: str = ""
    model: str = ""
    """The model's name."""
    step: int = 0
    """Number of requests to the model so far."""
    messages: Messages = field(default_factory=Messages)
    """The conversation as last sent."""
    usage: Usage = field(default_factory=Usage)
    """Usage of the run so far."""
    call: ToolCall | None = None
    """The tool call being answered."""
    run: Any = field(default=None, compare=False)
    """The run itself, for calls to other agents within it: `agent.send(…, within=context)`."""

    def for_call(self, call: ToolCall) -> RunContext[DepsT_co]:
        """The same context for one of its calls."""
        return replace(self, call=call)

    def _sizes(self) -> Iterator[str]:
        yield self.model
        yield f"step {self.step}"


Context = RunContext[Any]
