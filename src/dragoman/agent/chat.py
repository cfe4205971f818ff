"""A conversation with an agent that is kept for you."""

from __future__ import annotations

from typing import Any, Self

from dragoman.agent.agent import Agent
from dragoman.agent.results import Result
from dragoman.agent.stream import AgentStream, BlockingAgentStream
from dragoman.model import portal
from dragoman.model.collection import Messages
from dragoman.model.conversation import ConversationHistory, Policy
from dragoman.providers.provider import Provider
from dragoman.transport.model import Model
from dragoman.wire.inputs.reader import read_history


class AgentChat:
    """An agent, and what has been said to it so far.

    ```python
    chat = agent.chat()
    await chat.send("My name is Ada.")
    await chat.send("What is my name?")
    chat.use("google:gemini-2.5-flash")
    await chat.send("And now?")
    ```

    Without a history it keeps its own, in memory; a `ChatHistory` makes it last. One thing is said
    at a time.
    """

    def __init__(self, agent: Agent, history: Any = None, *, deps: Any = None) -> None:
        self.agent = agent
        self.deps = deps
        self.history = _kept(history)
        """Where the conversation is: a `ConversationHistory`, or the history that was given."""
        self._made: list[Agent] = []

    def __repr__(self) -> str:
        return f"AgentChat({self.agent!r}, {self.history!r})"

    def use(self, model: str | Provider | Model) -> None:
        """Go on with another model."""
        self.agent = self.agent.with_model(model)
        self._made.append(self.agent)

    async def close(self) -> None:
        """Close the models that `use` has opened; agent and history are the caller's."""
        while self._made:
            await self._made.pop().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def messages(self) -> Messages:
        """All that has been said."""
        if isinstance(self.history, ConversationHistory):
            return self.history.messages
        found = self.history.messages()
        return found if isinstance(found, Messages) else await found

    def messages_sync(self) -> Messages:
        """See `messages`."""
        return portal.run(self.messages())

    async def send(self, *content: Any, **options: Any) -> Result[Any]:
        """See `Agent.send`."""
        return await self.agent.send(*content, **self._with(options))

    def stream(self, *content: Any, **options: Any) -> AgentStream[Any]:
        """See `Agent.stream`."""
        return self.agent.stream(*content, **self._with(options))

    def send_sync(self, *content: Any, **options: Any) -> Result[Any]:
        """See `Agent.send`."""
        return portal.run(self.send(*content, **options))

    def stream_sync(self, *content: Any, **options: Any) -> BlockingAgentStream[Any]:
        """See `Agent.stream`."""
        return BlockingAgentStream(self.stream(*content, **options))

    def _with(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"deps": self.deps, **options, "history": self.history}


def _kept(history: Any) -> Any:
    from dragoman.history.blocking import BlockingChatHistory
    from dragoman.history.chat import ChatHistory

    if isinstance(history, (ChatHistory, BlockingChatHistory, ConversationHistory)):
        return history
    kept = ConversationHistory(policy=Policy.LENIENT)
    if history is not None:
        kept.add_all(read_history(history))
    return kept
