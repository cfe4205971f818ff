"""Random histories: complete, incomplete, pinned, with instructions anywhere."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from itertools import count
from typing import Any, NamedTuple, TypeVar

from hypothesis import strategies as st

from dragoman.history.tokens import estimate
from dragoman.history.truncation import (
    Callback,
    Chained,
    FitWindow,
    LastTurns,
    Strategy,
    Summarise,
    Symbolise,
)
from dragoman.model.collection import Messages
from dragoman.model.content import AnyPart
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.parts import Origin, Text, Thinking
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from dragoman.model.usage import Usage

T = TypeVar("T")
_REUSED = ("call_0", "call_1")
_ORIGIN = Origin(dialect="anthropic")


class _Talk:
    """A history under construction: calls that have no result yet."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.numbers = count()
        self.open: list[str] = []
        self.said = 0

    def chance(self, one_in: int) -> bool:
        # Small numbers are drawn more often than others: none of them says yes.
        return self.draw(st.integers(0, 60 * one_in - 1)) >= 60 * (one_in - 1)

    def words(self) -> str:
        return "word " * self.draw(st.sampled_from([0, 1, 1, 5, 40])) + str(next(self.numbers))

    def about(self) -> dict[str, object]:
        return {"pinned": True} if self.chance(40) else {}

    def user(self) -> Message:
        parts: list[AnyPart] = [Text(self.words())]
        if self.chance(6):
            parts.append(Image.from_url("https://example.com/cat.png"))
        if self.open and self.chance(3):  # results beside text, as Anthropic has them
            parts.insert(0, self.result())
        return Message(Role.USER, tuple(parts), metadata=self.about())

    def call(self) -> ToolCall:
        new = f"id_{next(self.numbers)}"
        call_id = self.draw(st.sampled_from(_REUSED)) if self.chance(5) else new
        self.open.append(call_id)
        return ToolCall.create(call_id, "look", {"a": self.words()})

    def result(self) -> ToolResult:
        index = self.draw(st.integers(0, len(self.open) - 1))
        call_id = "nobody" if self.chance(8) else self.open.pop(index)
        return ToolResult(call_id, self.words())

    def assistant(self, most: int) -> Message:
        parts: list[AnyPart] = []
        if self.chance(3):
            parts.append(Thinking(self.words(), signature="c2ln", origin=_ORIGIN))
        calls = [self.call() for _ in range(self.draw(st.integers(0, most)))]
        if not calls or self.chance(2):
            parts.append(Text(self.words()))
        made = Message(Role.ASSISTANT, (*parts, *calls), metadata=self.about(), origin=_ORIGIN)
        return made.replace(usage=self.usage()) if self.chance(4) else made

    def usage(self) -> Usage:
        """Usage that a provider might report, which differs a little; or any value."""
        if self.chance(10):
            return Usage(input=self.draw(st.integers(0, 10**6)))
        return Usage(input=self.said * self.draw(st.integers(8, 14)) // 10, output=5)

    def results(self) -> Iterator[Message]:
        while self.open and not self.chance(6):  # the rest comes late, or never
            role = Role.USER if self.chance(4) else Role.TOOL
            many = self.draw(st.integers(1, len(self.open)))
            parts = [self.result() for _ in range(many) if self.open]
            yield Message(role, tuple(parts), metadata=self.about())

    def turn(self) -> Iterator[Message]:
        """A user message, calls and an answer; or nearly so."""
        for message in self._turn():
            self.said += estimate(message)
            yield message

    def _turn(self) -> Iterator[Message]:
        if self.chance(6):
            role = self.draw(st.sampled_from([Role.SYSTEM, Role.DEVELOPER]))
            yield Message(role, (Text(self.words()),))
        if not self.chance(10):
            yield self.user()
        for _ in range(self.draw(st.integers(0, 3))):
            yield self.assistant(2)
            yield from self.results()
        if not self.chance(5):
            yield self.assistant(0)


class Case(NamedTuple):
    """A history, and room for a part of it."""

    messages: Messages
    limit: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any history and any limit, mostly near its size."""
    talk = _Talk(draw)
    turns = [list(talk.turn()) for _ in range(draw(st.sampled_from([4, 5, 6, 8, 3, 2, 1, 0])))]
    messages = Messages.of(message for turn in turns for message in turn)
    total = sum(map(estimate, messages))
    ninths = draw(st.sampled_from([5, 4, 6, 3, 7, 8, 2, 9, 1, 0, 10]))
    return Case(messages, total * ninths // 9 + draw(st.integers(0, 60)))


@st.composite
def plain_turns(draw: st.DrawFn) -> list[Message]:
    """A later turn that is complete and refers only to itself."""
    talk = _Talk(draw)
    talk.numbers = count(draw(st.integers(1_000, 10**9)))
    return [Message.user(talk.words()), talk.assistant(0)]


def _every_other(messages: Messages, _tokens: int, _config: object) -> list[Message]:
    return [*messages[::2], Message.user("and so on")]


STRATEGIES: dict[str, Strategy] = {
    "fit": FitWindow(),
    "tight": FitWindow(slack=0, marker=False),
    "rounds": FitWindow(rounds=True),
    "last turn": LastTurns(1),
    "last turns": LastTurns(3, marker=False),
    "summarise": Summarise(lambda messages, summary: f"{len(messages)} more. {summary}"[:200]),
    "summarise all": Summarise(lambda _m, _s: "So far.", keep_turns=1, max_tokens=30, batch=2),
    "summary fails": Summarise(lambda _m, _s: "", max_tokens=20),
    "symbolise": Symbolise(max_tokens=60, preview=10),
    "callback": Callback(lambda messages, _t, _c: messages[-4:]),
    "odd callback": Callback(_every_other),
    "chained": Chained(Symbolise(max_tokens=40), LastTurns(2), FitWindow(rounds=True)),
}


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends: a loop for each would take longer."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    msg = "it waits for something"
    raise AssertionError(msg)
