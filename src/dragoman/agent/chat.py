"""`AgentChat`: an agent with a conversation history."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, Self, Unpack, overload

from msgspec import UNSET

from dragoman.agent.agent import Agent
from dragoman.agent.options import AnyT, ChatOptions, Functions, NoneOrAsync, TextT, with_options
from dragoman.agent.results import Result
from dragoman.agent.stream import AgentStream, BlockingAgentStream
from dragoman.errors import InvalidInputError
from dragoman.interop.reader import read_history
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.model.type_parameters import TypeForm, TypeVar, filled
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model

T = typing.TypeVar("T")
DepsT_contra = TypeVar("DepsT_contra", default=Any, contravariant=True)
OutT_co = TypeVar("OutT_co", default=str, covariant=True)


class AgentChat(Generic[DepsT_contra, OutT_co]):
    """An agent together with a conversation.

    ```python
    chat = agent.chat()
    await chat.send("My name is Ada.")
    await chat.send("What is my name?")
    chat.use("google:gemini-2.5-flash")
    await chat.send("And now?")
    ```

    Without a history it keeps one in memory; pass a `ChatHistory` to store it. Send one message at
    a time.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, arguments: Any) -> Any:
            return super().__class_getitem__(filled(cls.__parameters__, arguments, Any, str))

    def __init__(
        self,
        agent: Agent[DepsT_contra, OutT_co],
        history: Any = None,
        *,
        deps: DepsT_contra | None = None,
    ) -> None:
        self.agent = agent
        self.deps = deps
        self.history = _kept(history)
        """The history of the conversation: a `ConversationHistory`, or the one passed in."""
        self._made: list[Agent[DepsT_contra, OutT_co]] = []

    def __repr__(self) -> str:
        return f"AgentChat({self.agent!r}, {self.history!r})"

    def use(self, model: str | Provider | Model) -> None:
        """Switch to another model."""
        self.agent = self.agent.with_model(model)
        self._made.append(self.agent)

    async def close(self) -> None:
        """Close the models opened by `use`; the agent and the history belong to the caller."""
        while self._made:
            await self._made.pop().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    def close_sync(self) -> None:
        """See `close`."""
        portal.run(self.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close_sync()

    async def messages(self) -> Messages:
        """All messages of the conversation."""
        if isinstance(self.history, ConversationHistory):
            return self.history.messages
        found = self.history.messages()
        return found if isinstance(found, Messages) else await found

    def messages_sync(self) -> Messages:
        """See `messages`."""
        return portal.run(self.messages())

    @overload
    async def send(
        self, *content: Any, **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> Result[OutT_co]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> Result[TextT]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: TypeForm[T], **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    async def send(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> Result[AnyT]: ...  # fmt: skip
    @with_options(ChatOptions)
    async def send(self, *content: Any, output: Any = UNSET, **options: Any) -> Result[Any]:
        """See `Agent.send`."""
        found: Result[Any] = await self.agent.send(*content, **self._with(output, options))
        return found

    @overload
    def stream(
        self, *content: Any, **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> AgentStream[OutT_co]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> AgentStream[TextT]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: TypeForm[T], **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> AgentStream[T]: ...  # fmt: skip
    @overload
    def stream(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> AgentStream[AnyT]: ...  # fmt: skip
    @with_options(ChatOptions)
    def stream(self, *content: Any, output: Any = UNSET, **options: Any) -> AgentStream[Any]:
        """See `Agent.stream`."""
        return self.agent.stream(*content, **self._with(output, options))

    @overload
    def send_sync(
        self, *content: Any, **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> Result[OutT_co]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> Result[TextT]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: TypeForm[T], **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> Result[T]: ...  # fmt: skip
    @overload
    def send_sync(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> Result[AnyT]: ...  # fmt: skip
    @with_options(ChatOptions)
    def send_sync(self, *content: Any, output: Any = UNSET, **options: Any) -> Result[Any]:
        """See `Agent.send`."""
        return self.agent.send_sync(*content, **self._with(output, options))

    @overload
    def stream_sync(
        self, *content: Any, **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> BlockingAgentStream[OutT_co]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: NoneOrAsync[TextT],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> BlockingAgentStream[TextT]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: TypeForm[T], **options: Unpack[ChatOptions[DepsT_contra]]
    ) -> BlockingAgentStream[T]: ...  # fmt: skip
    @overload
    def stream_sync(
        self, *content: Any, output: Functions[AnyT] | Mapping[str, Any],
        **options: Unpack[ChatOptions[DepsT_contra]],
    ) -> BlockingAgentStream[AnyT]: ...  # fmt: skip
    @with_options(ChatOptions)
    def stream_sync(
        self, *content: Any, output: Any = UNSET, **options: Any
    ) -> BlockingAgentStream[Any]:
        """See `Agent.stream`."""
        return self.agent.stream_sync(*content, **self._with(output, options))

    def _with(self, output: Any, options: dict[str, Any]) -> dict[str, Any]:
        if options.get("history", UNSET) is not UNSET:
            msg = "a chat has its own history: pass it to `agent.chat(history)` instead"
            raise InvalidInputError(msg)
        return {"deps": self.deps, **options, "output": output, "history": self.history}


def _kept(history: Any) -> Any:
    from dragoman.history.blocking import BlockingChatHistory
    from dragoman.history.chat import ChatHistory

    if isinstance(history, (ChatHistory, BlockingChatHistory, ConversationHistory)):
        return history
    kept = ConversationHistory(policy=Policy.LENIENT)
    if history is not None:
        kept.add_all(read_history(history))
    return kept
