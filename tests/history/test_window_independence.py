"""Windows don't depend on earlier windows of other models, limits and branches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import ceil
from typing import Any, NamedTuple

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, Messages, Usage
from dragoman.errors import ContextTooSmall
from dragoman.history import ChatHistory, ChatHistoryConfig, MemoryStorage, SessionIdentity, Window
from dragoman.history.tokens import estimate
from dragoman.history.truncation import (
    Chained,
    FitWindow,
    LastTurns,
    Summarise,
    Symbolise,
    notes,
)
from dragoman.model.parts import Origin
from tests.history.truncation.histories import run

ONE = SessionIdentity(agent="guide", chat="7")


class Model(msgspec.Struct, frozen=True):
    """A model whose context window is known."""

    name: str
    context_window: int


def _half(messages: Messages, _tokens: int, _config: Any) -> Messages:
    return messages[len(messages) // 2 :]


def _summary(messages: Messages, before: str) -> str:
    return f"{before[-20:]} and {len(messages)} messages"


STRATEGIES: dict[str, dict[str, Any]] = {
    "fit": {"strategy": FitWindow()},
    "fit without slack": {"strategy": FitWindow(slack=0.0, marker=False, rounds=True)},
    "summarise": {"strategy": Summarise(_summary, max_tokens=40)},
    "summarise all but": {"strategy": Summarise(_summary, max_tokens=40, keep_turns=2)},
    "symbolise": {"strategy": Symbolise(max_tokens=60)},
    "last turns": {"strategy": LastTurns(4)},
    "chained": {"strategy": Chained(LastTurns(6), FitWindow())},
    "callback": {"truncation_callback": _half},
    "counter": {"token_counter": lambda messages: sum(map(estimate, messages)) * 3 // 2},
}
ASKED = (None, 272, 408, 900, "somebody:unknown", Model("one", 300), Model("two", 600))
_PLACES = st.integers(0, 40)
STEPS = st.one_of(
    st.tuples(st.just("turn"), st.integers(0, 60)),
    st.tuples(st.just("ask"), st.integers(0, 2)),
    st.tuples(st.just("ask"), st.integers(0, 2)),
    st.tuples(st.just("window"), st.integers(0, 2)),
    st.tuples(st.just("window"), st.integers(0, 2)),
    st.tuples(st.just("wire"), st.integers(0, 2)),
    st.tuples(st.sampled_from(["remove", "replace", "pin", "fork"]), _PLACES),
    st.tuples(st.sampled_from(["switch", "reopen", "save"]), st.just(0)),
)


class Case(NamedTuple):
    """A history's settings, the models in use, and how they report usage."""

    config: ChatHistoryConfig
    asked: tuple[Any, ...]
    rate: float | None
    """Reported tokens per estimated token; `None` reports nothing."""
    overhead: int
    """Tokens that are reported and in no message."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Every strategy, with and without reports and autosave."""
    settings = STRATEGIES[draw(st.sampled_from(sorted(STRATEGIES)))]
    config = ChatHistoryConfig(
        context_window=500, reserved_for_completion=0, autosave=draw(st.booleans()), **settings
    )
    asked = draw(st.lists(st.sampled_from(ASKED), min_size=3, max_size=3, unique=True))
    rate = draw(st.sampled_from([None, None, 0.7, 1.0, 1.0, 1.6]))
    return Case(config, tuple(asked), rate, draw(st.sampled_from([0, 0, 150])))


View = tuple[list[str], int, int] | None


def view(window: Window) -> View:
    """A window without the ids of its notes, which are random."""
    shown = [each.text if notes.kind_of(each) else each.id for each in window]
    return shown, window.omitted, window.omitted_at


def starts_at(window: Window) -> str:
    """The id of the first message after the cut, without notes."""
    rest = [each.id for each in window[window.omitted_at :] if notes.kind_of(each) is None]
    return next(iter(rest), "")


async def window_of(history: ChatHistory, model: Any) -> Window | None:
    """The window, or `None` if nothing fits."""
    try:
        return await history.window(model)
    except ContextTooSmall:
        return None


class World:
    """One history used for all models, and one history per model used only for that model."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.storage = MemoryStorage()
        self.main = ChatHistory(ONE, self.storage, case.config)
        self.twins = [ChatHistory(ONE, MemoryStorage(), case.config) for _ in case.asked]
        self.starts: dict[tuple[int, int], str] = {}
        self.number = 0
        self.branches = 1

    async def take(self, step: str, value: int) -> None:
        """Takes one step, and compares what it returns."""
        await getattr(self, step)(value)

    async def _all(self, change: Callable[[ChatHistory], Awaitable[Any]]) -> None:
        for history in (self.main, *self.twins):
            await change(history)

    async def _added(self, *messages: Message) -> None:
        self.number += 1
        named = [m.with_id(f"m{self.number}-{at}") for at, m in enumerate(messages)]
        await self._all(lambda history: history.extend(named))

    async def turn(self, words: int) -> None:
        """A question and an answer without usage."""
        asked = Message.user(f"question {self.number} " + "word " * words)
        await self._added(asked, Message.assistant("Yes."))

    async def window(self, place: int) -> Window | None:
        """The window for a model; the same as in a history used only for this model."""
        model = self.case.asked[place]
        found = await window_of(self.main, model)
        alone = await window_of(self.twins[place], model)
        assert (found and view(found)) == (alone and view(alone))
        if found is not None:
            await self._is_complete(found)
            await self._is_stable(found, place)
        return found

    async def _is_stable(self, window: Window, place: int) -> None:
        """It starts where it started before, or where that of a copy without cuts starts."""
        start = starts_at(window)
        key = self.main.branch, place
        before, self.starts[key] = self.starts.get(key), start
        # A copy doesn't know which window a report is about, and a callback sees the window.
        is_comparable = self.case.rate is None and self.case.config.truncation_callback is None
        if start == before or not is_comparable:
            return
        bare = await ChatHistory.open(ONE, MemoryStorage(), self.case.config)
        await bare.extend(await self.main.messages())
        fresh = await window_of(bare, self.case.asked[place])
        assert fresh is not None
        assert start == starts_at(fresh)

    async def _is_complete(self, window: Window) -> None:
        """What a window does not show is counted as omitted, and nothing else is."""
        everything = [message.id for message in await self.main.messages()]
        own = [message.id for message in window if notes.kind_of(message) is None]
        own = [id for id in own if id in everything]
        assert own == [id for id in everything if id in set(own)]
        assert window.omitted == len(everything) - len(own)

    async def ask(self, place: int) -> None:
        """A request as an agent makes it: a question, a window, and a response with its usage."""
        await self._added(Message.user(f"question {self.number} " + "word " * (self.number % 30)))
        window = await self.window(place)
        if window is None:
            return
        model, rate = self.case.asked[place], self.case.rate
        name = model if isinstance(model, str) else getattr(model, "name", None)
        answer = Message.assistant("As far as I know, yes.")
        if rate is not None:
            sent = ceil(sum(map(estimate, window)) * rate) + self.case.overhead
            answer = answer.replace(
                usage=Usage(sent, ceil(estimate(answer) * rate)),
                origin=None if name is None else Origin(dialect="anthropic", model=name),
            )
        await self._added(answer)

    async def wire(self, place: int) -> None:
        """A request on the wire: its repairs state what the window omits."""
        model = self.case.asked[place]
        if not isinstance(model, str):
            return
        window = await self.window(place)
        if window is None:
            return
        encoded = await self.main.to_wire("openai-chat", model=model)
        omitted = [repair for repair in encoded.repairs if repair.rule == "window"]
        assert len(omitted) == bool(window.omitted)
        assert all(each.reason.startswith(f"{window.omitted} ") for each in omitted)

    async def _at(self, place: int) -> str | None:
        messages = await self.main.messages()
        return messages[place % len(messages)].id if messages else None

    async def remove(self, place: int) -> None:
        """Remove a message."""
        if (id := await self._at(place)) is not None:
            await self._all(lambda history: history.remove(id))

    async def replace(self, place: int) -> None:
        """Replace a message."""
        if (id := await self._at(place)) is not None:
            await self._all(lambda history: history.replace(id, Message.user("word " * place)))

    async def pin(self, place: int) -> None:
        """Pin a message."""
        if place < 5 and (id := await self._at(place)) is not None:
            await self._all(lambda history: history.pin(id))

    async def fork(self, place: int) -> None:
        """A second branch; with more, there would be more than eight cuts."""
        if self.branches < 2 and (id := await self._at(place)) is not None:
            await self._all(lambda history: history.fork(id))
            self.branches += 1

    async def switch(self, _value: int) -> None:
        """Switch to the other branch."""
        if self.branches > 1:
            await self._all(lambda history: history.switch(1 - history.branch))

    async def save(self, _value: int) -> None:
        """Save."""
        await self._all(lambda history: history.save())

    async def reopen(self, _value: int) -> None:
        """Reopen the history used for all models; the others stay open."""
        await self.save(0)
        self.main = await ChatHistory.open(ONE, self.storage, self.case.config)


async def _holds(case: Case, steps: list[tuple[str, int]]) -> None:
    world = World(case)
    for step, value in steps:
        await world.take(step, value)


@given(case=cases(), steps=st.lists(STEPS, min_size=10, max_size=60))
def test_a_window_depends_on_no_other(case: Case, steps: list[tuple[str, int]]) -> None:
    """Any sequence of calls gives each model the same windows as if it were the only one."""
    run(_holds(case, steps))
