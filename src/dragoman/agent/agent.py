"""The agent: what people talk to."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, overload

from msgspec import UNSET

from dragoman.agent.conversations import conversation_of
from dragoman.agent.events import AgentEvent, RunFinished
from dragoman.agent.executor import ToolExecutor
from dragoman.agent.hooks import Hooks
from dragoman.agent.limits import RunLimits, unknown_cost
from dragoman.agent.linking import Links
from dragoman.agent.orchestrator import Orchestrator, ToolOrchestrator
from dragoman.agent.output.typed import TypedOutput
from dragoman.agent.results import Result
from dragoman.agent.resuming import Beginning, begun
from dragoman.agent.runs import Run
from dragoman.agent.setup import Setup, prompt_of, request_with, system_of
from dragoman.agent.stream import AgentStream, BlockingAgentStream
from dragoman.agent.toolbox import AgentTool, Toolbox
from dragoman.agent.typed import TypedOrchestrator
from dragoman.errors import ConfigError, InvalidInputError
from dragoman.model import portal
from dragoman.model.catalogue import Embeddings
from dragoman.model.frozen import EMPTY
from dragoman.model.requests import Request
from dragoman.model.responses import Embedding
from dragoman.model.value import expect
from dragoman.providers.prices import Prices
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model, open_model

if TYPE_CHECKING:
    from dragoman.agent.chat import AgentChat

T = TypeVar("T")
OutputMode = Literal["native", "tool", "two_phase"]


class Agent:
    """A model with tools, instructions and a way of answering.

    ```python
    agent = Agent("anthropic:claude-sonnet-4-5", tools=[weather], system="Be brief.")
    result = await agent.send("Will it rain in Basel?")
    print(result.output)
    ```

    It keeps nothing of what is said: the history is given with each call, and what is new comes
    back in `result.messages`. A `ConversationHistory` or `ChatHistory` is kept up to date. One
    agent serves any number of conversations at once; `chat()` keeps one for you.

    Further settings are those of a request: `max_tokens`, `temperature`, `thinking`,
    `tool_choice`, … An agent, or a call of it, may have them.
    """

    def __init__(  # noqa: PLR0913 - all but the model by keyword, and optional
        self,
        model: str | Provider | Model,
        *,
        tools: Iterable[AgentTool] = (),
        system: Any = None,
        output: Any = None,
        output_mode: OutputMode | None = None,
        output_retries: int = 2,
        limits: RunLimits | None = None,
        hooks: Hooks | None = None,
        executor: ToolExecutor | None = None,
        orchestrator: Orchestrator | None = None,
        prices: Prices | Mapping[str, Any] | None = None,
        history_hooks: Mapping[str, Any] = EMPTY,
        links_responses: bool = True,
        **settings: Any,
    ) -> None:
        expect(limits, (RunLimits, type(None)), "limits")
        expect(hooks, (Hooks, type(None)), "hooks")
        expect(executor, (ToolExecutor, type(None)), "executor")
        _check_retries(output_retries)
        _check_orchestrator(orchestrator)
        opened = open_model(model)
        self._owns_model = opened is not model
        self._output_mode = output_mode
        self._setup = Setup(
            model=opened,
            tools=Toolbox.of(tools),
            system=system_of(system),
            request=request_with(Request(), settings),
            output=TypedOutput.of(output, output_mode),
            output_retries=output_retries,
            limits=limits or RunLimits(),
            hooks=hooks or Hooks(),
            executor=executor or ToolExecutor(),
            orchestrator=orchestrator,
            prices=prices if isinstance(prices, Prices) else Prices(prices or {}),
            history_hooks=history_hooks,
            links=Links() if links_responses else None,
        )

    @property
    def model(self) -> Model:
        """The model that answers."""
        return self._setup.model

    def __repr__(self) -> str:
        return f"Agent({self.model.name}, {len(self._setup.tools.definitions)} tools)"

    def with_model(self, model: str | Provider | Model) -> Agent:
        """The same agent on another model, for the next call or in mid-conversation."""
        opened = open_model(model)
        other = self._with(replace(self._setup, model=opened))
        other._owns_model = opened is not model
        return other

    def _with(self, setup: Setup) -> Agent:
        other = Agent.__new__(Agent)
        other._setup, other._output_mode, other._owns_model = setup, self._output_mode, False
        return other

    async def close(self) -> None:
        """Close the model, unless it was handed in open. Calling it again does nothing."""
        if self._owns_model:
            await self.model.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    # --- talking

    @overload
    async def send(
        self, *content: Any, output: type[T], history: Any = None, deps: Any = None,
        approvals: Mapping[str, bool | str] = EMPTY, results: Mapping[str, Any] = EMPTY,
        **settings: Any,
    ) -> Result[T]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: Any = UNSET, history: Any = None, deps: Any = None,
        approvals: Mapping[str, bool | str] = EMPTY, results: Mapping[str, Any] = EMPTY,
        **settings: Any,
    ) -> Result[Any]: ...  # fmt: skip
    async def send(self, *content: Any, **options: Any) -> Result[Any]:
        """The answer, after as many rounds of tools as it takes.

        `content` is what the user says: texts and media, or a message. Without any, the
        conversation goes on from where `history` ends: calls that wait for a result are run, or
        answered with `approvals` (by id: True, False, or why not) and `results` (by id: what the
        caller's own tool returned). `deps` is what tools find in their `RunContext`.
        """
        return await self._stream(content, options, streams=False).collect()

    @overload
    def stream(
        self, *content: Any, output: type[T], history: Any = None, deps: Any = None,
        approvals: Mapping[str, bool | str] = EMPTY, results: Mapping[str, Any] = EMPTY,
        **settings: Any,
    ) -> AgentStream[T]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: Any = UNSET, history: Any = None, deps: Any = None,
        approvals: Mapping[str, bool | str] = EMPTY, results: Mapping[str, Any] = EMPTY,
        **settings: Any,
    ) -> AgentStream[Any]: ...  # fmt: skip
    def stream(self, *content: Any, **options: Any) -> AgentStream[Any]:
        """As `send`, piece by piece: chunks that add up to its result."""
        return self._stream(content, options, streams=True)

    def chat(self, history: Any = None, *, deps: Any = None) -> AgentChat:
        """A conversation that is kept for you."""
        from dragoman.agent.chat import AgentChat

        return AgentChat(self, history, deps=deps)

    # --- the same without `await`: in scripts, in notebooks, in threads

    def send_sync(self, *content: Any, **options: Any) -> Result[Any]:
        """See `send`."""
        return portal.run(self._stream(content, options, streams=False).collect())

    def stream_sync(self, *content: Any, **options: Any) -> BlockingAgentStream[Any]:
        """See `stream`; `for` and `with` go where `async for` and `async with` would."""
        return BlockingAgentStream(self._stream(content, options, streams=True))

    def close_sync(self) -> None:
        """See `close`."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close_sync()

    # --- embeddings

    async def embed_query(self, text: str, **settings: Any) -> Embedding:
        """A text's place in the model's space."""
        expect(text, str, "the text to embed")
        found: Embedding = await self._embedder()(text, **settings)
        return found

    async def embed_documents(self, texts: Iterable[str], **settings: Any) -> Embeddings:
        """The places of several texts, in their order."""
        if isinstance(texts, str):
            msg = "embed_documents takes a list of texts; for one there is embed_query"
            raise InvalidInputError(msg)
        expect(texts, Iterable, "the texts to embed")
        found: Embeddings = await self._embedder()(list(texts), **settings)
        return found

    def _embedder(self) -> Any:
        embed = getattr(self.model, "embed", None)
        if embed is None:
            msg = f"{self.model.name} has no embeddings"
            raise ConfigError(msg)
        return embed

    # --- a run

    def _stream(
        self, content: tuple[Any, ...], options: dict[str, Any], *, streams: bool
    ) -> AgentStream[Any]:
        given = dict(options)
        history, deps = given.pop("history", None), given.pop("deps", None)
        beginning = Beginning(
            prompt_of(content), given.pop("approvals", EMPTY), given.pop("results", EMPTY)
        )
        beginning.check()
        setup = self._setup_for(given)
        _expect_price(setup)
        run = Run(setup, conversation_of(history, setup.history_hooks), deps=deps, streams=streams)
        return AgentStream(run, lambda: _played(run, beginning))

    def _setup_for(self, given: dict[str, Any]) -> Setup:
        """The agent's setup with what a call changes of it."""
        setup = self._setup
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
        if given:
            changes["request"] = request_with(setup.request, given)
        return replace(setup, **changes)


def _check_retries(retries: object) -> None:
    if type(retries) is not int or retries < 0:
        msg = "output_retries must be a whole number from 0 on"
        raise InvalidInputError(msg)


def _check_orchestrator(orchestrator: object) -> None:
    if isinstance(orchestrator, type):
        msg = "orchestrator must be an object, not a class: write TypedOrchestrator(), for one"
        raise InvalidInputError(msg)
    expect(orchestrator, (Orchestrator, type(None)), "orchestrator")


def _expect_price(setup: Setup) -> None:
    """Raise where the cost is limited and nobody will know it; before anything is spent."""
    if setup.limits.cost is not None and not setup.prices.can_tell(setup.model.name):
        raise unknown_cost()


async def _played(run: Run, beginning: Beginning) -> AsyncGenerator[AgentEvent]:
    """All that happens in a run."""
    orchestrator = run.setup.orchestrator
    if orchestrator is None:
        orchestrator = ToolOrchestrator() if run.setup.output is None else TypedOrchestrator()
    await orchestrator.initialize(run)
    try:
        async with aclosing(begun(run, beginning, orchestrator)) as events:
            async for event in events:
                yield event
        while not run.is_over:
            iteration = orchestrator.iterate(run)
            try:
                async for event in iteration:
                    yield event
            finally:
                if isinstance(iteration, AsyncGenerator):
                    await iteration.aclose()
    finally:
        await orchestrator.finalize(run)
    result = await run.hooked(run.setup.hooks.after_send, run.result)
    yield RunFinished(result)
