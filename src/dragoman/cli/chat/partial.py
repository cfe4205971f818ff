"""Keeps the received part of an interrupted answer."""

from __future__ import annotations

from dragoman.agent import (
    AgentEvent,
    MessageAdded,
    RetryRequested,
    StepStarted,
    TextDelta,
    ThinkingDelta,
)
from dragoman.history.chat import ChatHistory
from dragoman.model.messages import Message, make_message
from dragoman.model.parts import Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.usage import FinishReason


class Heard:
    """The text of the current answer so far; earlier answers are already messages."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._thought: list[str] = []

    def hear(self, event: AgentEvent) -> None:
        """Add what an event contributes."""
        if isinstance(event, TextDelta):
            self._said.append(event.text)
        elif isinstance(event, ThinkingDelta):
            self._thought.append(event.text)
        elif isinstance(event, (StepStarted, RetryRequested, MessageAdded)):
            self._said.clear()
            self._thought.clear()

    def message(self, finish: FinishReason) -> Message | None:
        """The text received so far, with its thinking; None if there is none.

        Tool calls are left out: they may be incomplete, and none of them was run.
        """
        said, thought = ("".join(words).lstrip("\n") for words in (self._said, self._thought))
        if not said.strip():
            return None
        parts: list[Text | Thinking] = [Thinking(thought)] if thought.strip() else []
        return make_message(Role.ASSISTANT, (*parts, Text(said)), finish=finish)

    async def keep(self, history: ChatHistory, finish: FinishReason) -> bool:
        """Add it to the history; returns whether there was something to add."""
        message = self.message(finish)
        if message is None:
            return False
        last = await history.last()
        # Cancelled while the whole answer was being stored: it may already be there.
        if last is None or last.role is not Role.ASSISTANT or last.text != message.text:
            await history.add(message)
        return True
