"""The `Agent` class."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload

from msgspec import UNSET, UnsetType

from dragoman.agent.approvals import Approve
from dragoman.agent.checks import (
    check_orchestrator,
    check_retries,
    expect_no_deps_wanted,
    expect_price,
    opened,
)
from dragoman.agent.context import RunContext
from dragoman.agent.conversations import conversation_of
from dragoman.agent.declared_types import declared_output
from dragoman.agent.embedding import Embeds
from dragoman.agent.executor import ToolExecutor
from dragoman.agent.handoffs import Handoff, as_tool
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import RunLimits
from dragoman.agent.options import (
    AgentOptions,
    AnyT,
    CallOptions,
    CallOptionsBesideDeps,
    Functions,
    Instructions,
    NoneOrAsync,
    OutputMode,
    Settings,
    TextT,
    with_options,
)
from dragoman.agent.orchestrator import Orchestrator
from dragoman.agent.output.typed import TypedOutput
from dragoman.agent.overriding import overrides, overriding
from dragoman.agent.response_chaining import Links
from dragoman.agent.results import Result
from dragoman.agent.resuming import Beginning
from dragoman.agent.run_loop import play
from dragoman.agent.runs import Run, run_of
from dragoman.agent.setup import Setup, checked_function, prompt_of, request_with, system_of
from dragoman.agent.stream import AgentStream, BlockingAgentStream
from dragoman.agent.toolbox import AgentTool, DynamicTools, Toolbox
from dragoman.agent.toolsets import release
from dragoman.errors import InvalidInputError
from dragoman.model import portal
from dragoman.model.frozen import EMPTY
from dragoman.model.functions.tool import Tool
from dragoman.model.requests import Request
from dragoman.model.type_parameters import TypeForm, TypeVar, filled
from dragoman.model.value import expect, name_shown
from dragoman.providers.prices import LISTED, Prices
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model, open_model

if TYPE_CHECKING:
    from dragoman.agent.chat import AgentChat

T = typing.TypeVar("T")
DepsT_contra = TypeVar("DepsT_contra", default=Any, contravariant=True)
OutT_co = TypeVar("OutT_co", default=str, covariant=True)


class Agent(Embeds, Generic[DepsT_contra, OutT_co]):
    """A model with tools, a system prompt and an output type.

    ```python
    agent = Agent("anthropic:claude-sonnet-4-5", tools=[weather], system="Be brief.")
    result = await agent.send("Will it rain in Basel?")
    print(result.output)
    ```

    An agent is stateless: pass the history with each call, and get the new messages in
    `result.messages`. A `ConversationHistory` or `ChatHistory` is updated in place. One agent
    serves any number of conversations concurrently; `chat()` manages one for you.

    Other keyword arguments are request settings: `max_tokens`, `temperature`, `thinking`,
    `tool_choice`, … They can be set on the agent or on a call (`dragoman.agent.Settings`).

    For type checkers it is an `Agent[Deps, Out]`: `Out` is the type of `output`, by default `str`;
    `Deps` is inferred from its tools, hooks and system prompt, or written as `Agent[Database](…)`.
    `Agent[Database, Place](model)` is the same as `output=Place`.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, arguments: Any) -> Any:
            return super().__class_getitem__(filled(cls.__parameters__, arguments, Any, str))

    @overload
    def __init__(
        self, model: str | Provider | Model, *, output: None = None,
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, model: str | Provider | Model, *, output: TypeForm[OutT_co],
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, model: str | Provider | Model, *, output: Callable[..., Awaitable[OutT_co]],
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, model: str | Provider | Model, *, output: Functions[OutT_co],
        **options: Unpack[AgentOptions[DepsT_contra]],
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Agent[Any, Any], model: str | Provider | Model, *, output: Mapping[str, Any],
        **options: Unpack[AgentOptions[Any]],
    ) -> None: ...  # fmt: skip
    @with_options(Settings)
    def __init__(  # noqa: PLR0913 - all but the model by keyword, and optional
        self,
        model: str | Provider | Model,
        *,
        name: str | None = None,
        tools: Iterable[AgentTool[Any]] = (),
        dynamic_tools: DynamicTools[Any] | None = None,
        system: Instructions[Any] = None,
        output: Any = None,
        output_mode: OutputMode | None = None,
        output_retries: int = 2,
        limits: RunLimits | None = None,
        hooks: Hooks[Any] | None = None,
        approve: Approve[Any] | None = None,
        executor: ToolExecutor | None = None,
        orchestrator: Orchestrator | None = None,
        prices: Prices | Mapping[str, Any] | None = None,
        history_hooks: Mapping[str, Any] = EMPTY,
        links_responses: bool = True,
        **settings: Any,
    ) -> None:
        expect(name, (str, type(None)), "name")
        expect(limits, (RunLimits, type(None)), "limits")
        expect(hooks, (Hooks, type(None)), "hooks")
        expect(executor, (ToolExecutor, type(None)), "executor")
        check_retries(output_retries)
        check_orchestrator(orchestrator)
        own = open_model(model)
        self._owns_model = own is not model
        self._output_mode: OutputMode | None = output_mode
        self._may_declare_output = output is None
        self._key = object()  # identifies this agent and its copies in `override`
        self._setup = Setup(
            model=own,
            name=name or "",
            tools=Toolbox.of(tools),
            dynamic_tools=checked_function(dynamic_tools, "dynamic_tools", "the run"),
            system=system_of(system),
            request=request_with(Request(), _given(settings)),
            output=TypedOutput.of(output, output_mode),
            output_retries=output_retries,
            limits=limits or RunLimits(),
            hooks=hooks or Hooks(),
            approve=checked_function(approve, "approve", "the call and the run"),
            executor=executor or ToolExecutor(),
            orchestrator=orchestrator,
            prices=_prices(prices),
            history_hooks=history_hooks,
            links=Links() if links_responses else None,
        )

    @property
    def name(self) -> str | None:
        """The name of the agent; None if it has none."""
        return self._setup.name or None

    @property
    def model(self) -> Model:
        """The model that answers."""
        return self._setup_now().model

    def __repr__(self) -> str:
        may_grow = self._setup.dynamic_tools is not None or self._setup.tools.toolsets
        more = "+" if may_grow else ""
        named = "".join(f"{name}, " for name in name_shown(self.name))
        return f"Agent({named}{self.model.name}, {len(self._setup.tools.definitions)}{more} tools)"

    def with_model(self, model: str | Provider | Model) -> Self:
        """A copy of the agent that uses another model, for the next call or in mid-conversation."""
        own = open_model(model)
        other = copy(self)
        other._setup = replace(self._setup, model=own)
        other._owns_model = own is not model
        return other

    def override(
        self,
        *,
        model: Model | UnsetType = UNSET,
        deps: DepsT_contra | UnsetType = UNSET,
        tools: Iterable[AgentTool[DepsT_contra]] | UnsetType = UNSET,
        system: Instructions[DepsT_contra] | UnsetType = UNSET,
    ) -> AbstractContextManager[None]:
        """Replace parts of the agent within a `with` block, for tests.

        ```python
        with agent.override(model=TestModel(), deps=FakeDatabase()):
            await code_that_uses_the_agent()
        ```

        It applies to the current task and the tasks it starts, and takes precedence over the
        options of a call.
        """
        changes = _given({"deps": deps})
        if model is not UNSET:
            changes["model"] = opened(model)
        if tools is not UNSET:
            changes.update(tools=Toolbox.of(tools), dynamic_tools=None)
        if system is not UNSET:
            changes["system"] = system_of(system)
        return overriding(self._key, changes)

    async def close(self) -> None:
        """Close the model, unless it was passed in open, and release toolsets. Can be repeated."""
        try:
            await release(self._setup.tools.toolsets)
        finally:
            if self._owns_model:
                await self._setup.model.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    # --- calls

    @overload
    async def send(
        self: Agent[None, T], *content: Any, **options: Unpack[CallOptions[None]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, deps: DepsT_contra,
        **options: Unpack[CallOptionsBesideDeps[DepsT_contra]],
    ) -> Result[OutT_co]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> Result[TextT]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: TypeForm[T], **options: Unpack[CallOptions[DepsT_contra]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> Result[AnyT]: ...  # fmt: skip
    @with_options(CallOptions)
    async def send(self, *content: Any, output: Any = UNSET, **options: Any) -> Result[Any]:
        """Send a prompt and return the final answer, after as many tool rounds as needed.

        `content` is the prompt: texts and media, or a message. Without it, the conversation
        continues from the end of `history`: pending tool calls are run, or resolved with
        `approvals` (by call id: True, False, a reason to refuse, or other arguments) and `results`
        (by call id: the result of a tool that the caller runs). `approve` is a function that
        decides about such calls immediately. `deps` is available to tools in their `RunContext`.
        """
        return await self._stream(content, {**options, "output": output}, streams=False).collect()

    @overload
    def stream(
        self: Agent[None, T], *content: Any, **options: Unpack[CallOptions[None]]
    ) -> AgentStream[T]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, deps: DepsT_contra,
        **options: Unpack[CallOptionsBesideDeps[DepsT_contra]],
    ) -> AgentStream[OutT_co]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> AgentStream[TextT]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: TypeForm[T], **options: Unpack[CallOptions[DepsT_contra]]
    ) -> AgentStream[T]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> AgentStream[AnyT]: ...  # fmt: skip
    @with_options(CallOptions)
    def stream(self, *content: Any, output: Any = UNSET, **options: Any) -> AgentStream[Any]:
        """Like `send`, but as a stream of chunks that add up to the same result."""
        return self._stream(content, {**options, "output": output}, streams=True)

    # --- agents as parts of other agents

    def as_tool(
        self, name: str | None = None, description: str = ""
    ) -> Tool[..., Coroutine[Any, Any, Result[OutT_co]], RunContext[DepsT_contra]]:
        """A tool with which other agents call this one, with a prompt and the same `deps`.

        It has the agent's name, unless another one is given.
        Its usage counts towards the usage and the limits of the calling run.
        """
        return as_tool(self, self._called(name), description)

    def as_handoff(self, name: str | None = None, description: str = "") -> Handoff[DepsT_contra]:
        """A handoff for the `tools` of other agents: their model can transfer the conversation.

        The run continues with this agent's model, system prompt, settings and tools; `result.agent`
        is the name.
        """
        return Handoff(self, self._called(name), description, self._setup_now)

    def _called(self, name: str | None) -> str:
        """The name by which other agents call this one."""
        found = name or self.name
        if found is None:
            msg = "the agent has no name: pass one here, or as Agent(…, name=…)"
            raise InvalidInputError(msg)
        return found

    # --- a conversation

    @overload
    def chat(
        self: Agent[None, T], history: Any = None, *, deps: None = None
    ) -> AgentChat[DepsT_contra, T]: ...  # fmt: skip
    @overload
    def chat(
        self, history: Any = None, *, deps: DepsT_contra
    ) -> AgentChat[DepsT_contra, OutT_co]: ...  # fmt: skip
    def chat(self, history: Any = None, *, deps: Any = None) -> AgentChat[Any, Any]:
        """A conversation that keeps its history."""
        from dragoman.agent.chat import AgentChat

        return AgentChat(self, history, deps=deps)

    # --- blocking variants: for scripts, notebooks and threads

    @overload
    def send_sync(
        self: Agent[None, T], *content: Any, **options: Unpack[CallOptions[None]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, deps: DepsT_contra,
        **options: Unpack[CallOptionsBesideDeps[DepsT_contra]],
    ) -> Result[OutT_co]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> Result[TextT]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: TypeForm[T], **options: Unpack[CallOptions[DepsT_contra]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> Result[AnyT]: ...  # fmt: skip
    @with_options(CallOptions)
    def send_sync(self, *content: Any, output: Any = UNSET, **options: Any) -> Result[Any]:
        """See `send`."""
        return portal.run(
            self._stream(content, {**options, "output": output}, streams=False).collect()
        )

    @overload
    def stream_sync(
        self: Agent[None, T], *content: Any, **options: Unpack[CallOptions[None]]
    ) -> BlockingAgentStream[T]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, deps: DepsT_contra,
        **options: Unpack[CallOptionsBesideDeps[DepsT_contra]],
    ) -> BlockingAgentStream[OutT_co]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> BlockingAgentStream[TextT]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: TypeForm[T], **options: Unpack[CallOptions[DepsT_contra]]
    ) -> BlockingAgentStream[T]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[CallOptions[DepsT_contra]],
    ) -> BlockingAgentStream[AnyT]: ...  # fmt: skip
    @with_options(CallOptions)
    def stream_sync(
        self, *content: Any, output: Any = UNSET, **options: Any
    ) -> BlockingAgentStream[Any]:
        """See `stream`; use `for` and `with` instead of `async for` and `async with`."""
        return BlockingAgentStream(
            self._stream(content, {**options, "output": output}, streams=True)
        )

    def close_sync(self) -> None:
        """See `close`."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close_sync()

    # --- a run

    def _stream(
        self, content: tuple[Any, ...], options: dict[str, Any], *, streams: bool
    ) -> AgentStream[Any]:
        given = _given(options)
        history, deps = given.pop("history", None), given.pop("deps", None)
        deps = overrides(self._key).get("deps", deps)
        parent, call = run_of(given.pop("within", None))
        beginning = Beginning(
            prompt_of(content), given.pop("approvals", EMPTY), given.pop("results", EMPTY)
        )
        beginning.check()
        setup = self._setup_for(given)
        if setup.approve is None and parent is not None:
            setup = replace(setup, approve=parent.setup.approve)
        expect_price(setup)
        if deps is None:
            expect_no_deps_wanted(setup)
        conversation = conversation_of(history, setup.history_hooks)
        run = Run(setup, conversation, deps=deps, streams=streams, parent=parent, call=call)
        return AgentStream(run, lambda: play(run, beginning))

    def _setup_now(self) -> Setup:
        """The current setup, with any overrides of tests."""
        if self._may_declare_output:  # `typing` sets it after `__init__` has returned
            kind = declared_output(getattr(self, "__orig_class__", type(self)), Agent)
            output = TypedOutput.of(kind, self._output_mode)
            self._setup = replace(self._setup, output=output)
            self._may_declare_output = False
        changes = {name: each for name, each in overrides(self._key).items() if name != "deps"}
        return replace(self._setup, **changes) if changes else self._setup

    def _setup_for(self, given: dict[str, Any]) -> Setup:
        """The agent's setup with the options of a call."""
        setup = self._setup_now()
        if not given:
            return setup
        changes: dict[str, Any] = {}
        if "output" in given or "output_mode" in given:
            output = given.pop("output", UNSET)
            mode = given.pop("output_mode", self._output_mode)
            changes["output"] = TypedOutput.of(setup.output if output is UNSET else output, mode)
        if "limits" in given:
            limits = given.pop("limits")
            expect(limits, (RunLimits, type(None)), "limits")
            changes["limits"] = limits or RunLimits()
        if "approve" in given:
            changes["approve"] = checked_function(
                given.pop("approve"), "approve", "the call and the run"
            )
        if given:
            changes["request"] = request_with(setup.request, given)
        return replace(setup, **changes)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The options without those that are unset."""
    return {name: each for name, each in options.items() if each is not UNSET}


def _prices(given: Prices | Mapping[str, Any] | None) -> Prices:
    if isinstance(given, Prices):
        return given
    return Prices(given) if given else LISTED
