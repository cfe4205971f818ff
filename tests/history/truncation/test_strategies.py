"""The other strategies: last turns, summaries, symbols, chains and callbacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Any

import pytest

from dragoman.errors import InvalidInputError
from dragoman.history.truncation import (
    NOTHING_CUT,
    Callback,
    Chained,
    Cut,
    FitWindow,
    LastTurns,
    Strategy,
    Summarise,
    Symbolise,
    truncate,
)
from dragoman.history.truncation.notes import body_of, kind_of
from dragoman.history.truncation.truncating import acts_when_exceeded
from dragoman.model.collection import Messages
from dragoman.model.media import Image
from dragoman.model.messages import Message
from dragoman.model.roles import Role
from dragoman.model.tools import ToolCall, ToolResult
from tests.history.truncation.histories import run
from tests.history.truncation.talks import room_for, talk, words

_PLENTY = 10**6
_SIX = talk("s u1 a1 u2 a2 u3 a3 u4 a4 u5 a5 u6 a6")
_ROOM = room_for("s u4 a4 u5 a5 u6 a6", _SIX)


def _cut(strategy: Strategy, limit: int = _ROOM, cut: Cut = NOTHING_CUT, config: Any = None) -> Cut:
    return run(truncate(_SIX, limit=limit, strategy=strategy, cut=cut, config=config))


def _window(strategy: Strategy, limit: int = _ROOM) -> str:
    return words(_cut(strategy, limit).apply(_SIX))


# --- last turns


def test_last_turns() -> None:
    """The last turns stay, whether or not there is room for more."""
    assert _window(LastTurns(2), _PLENTY) == "s * u5 a5 u6 a6"
    assert _window(LastTurns(2, marker=False), _PLENTY) == "s u5 a5 u6 a6"
    assert _cut(LastTurns(9), _PLENTY) is NOTHING_CUT


def test_last_turns_that_do_not_fit() -> None:
    """The strategy doesn't guarantee to fit; the rest is cut further."""
    assert _window(LastTurns(5)).endswith("* u5 a5 u6 a6")


def test_last_turns_needs_one() -> None:
    """Keeping no turn is rejected."""
    with pytest.raises(InvalidInputError):
        LastTurns(0)


# --- summaries


def test_summary() -> None:
    """A summary by any callable replaces the omitted messages, with the user's role."""
    made = _cut(Summarise(lambda messages, _: f"about {words(messages)}", max_tokens=40, slack=0))
    window = made.apply(_SIX)
    assert words(window) == "s * u5 a5 u6 a6"
    assert (window[1].role, kind_of(window[1])) == (Role.USER, "summary")
    assert body_of(window[1]) == "about u1 a1 u2 a2 u3 a3 u4 a4"


def test_summary_by_a_coroutine_function() -> None:
    """The callable may be async."""

    async def model(_messages: Messages, _summary: str) -> str:
        await asyncio.sleep(0)
        return "so far"

    made = asyncio.run(truncate(_SIX, limit=_ROOM, strategy=Summarise(model, max_tokens=40)))
    assert body_of(made.notes[0]) == "so far"


def test_summary_in_batches() -> None:
    """A long history is summarized in batches of complete turns, each with the summary so far."""
    seen: list[tuple[str, str]] = []

    def model(messages: Messages, summary: str) -> str:
        seen.append((words(messages), summary))
        return f"{len(seen)}"

    _cut(Summarise(model, batch=5, max_tokens=40, slack=0))
    assert seen == [("u1 a1 u2 a2", ""), ("u3 a3 u4 a4", "1")]


def test_summary_of_a_summary() -> None:
    """An earlier summary becomes part of the next one."""
    strategy = Summarise(
        lambda messages, before: f"{before} {len(messages)}".strip(), max_tokens=40, slack=0
    )
    made = _cut(strategy, _ROOM)
    made = _cut(strategy, room_for("s u5 a5 u6 a6", _SIX), made)
    assert [body_of(note) for note in made.notes] == ["8 2"]
    assert made.left_out == 10


def test_summary_of_all_but_some_turns() -> None:
    """More can be summarized than necessary, so that it happens rarely."""
    made = _cut(Summarise(lambda _m, _s: "so far", keep_turns=1, max_tokens=40))
    assert words(made.apply(_SIX)) == "s * u6 a6"


def _raises(_messages: Messages, _summary: str) -> str:
    msg = "the secret"
    raise RuntimeError(msg)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (_raises, "the summary failed: RuntimeError"),
        (lambda _m, _s: " \n", "the summary is empty"),
        (lambda _m, _s: None, "the summary is empty"),
        (lambda _m, _s: "word " * 500, "the summary is too long"),
    ],
)
def test_summary_fails(model: Any, reason: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without a usable summary the turns are omitted as well; the reason is reported."""
    with caplog.at_level(logging.WARNING, logger="dragoman"):
        made = _cut(Summarise(model, max_tokens=40))
    assert words(made.apply(_SIX)) == "s * u5 a5 u6 a6"
    assert made.notes[0].metadata["dragoman"] == {"note": "marker", "reason": reason}
    assert caplog.messages == [f"truncated without a summary: {reason}"]


def test_summary_without_room() -> None:
    """If there is no room for a summary, no model is called."""
    made = _cut(Summarise(_raises, max_tokens=1_000))
    assert "no room" in made.notes[0].metadata["dragoman"]["reason"]


@pytest.mark.parametrize("options", [{"batch": 0}, {"keep_turns": 0}, {"max_tokens": 0}])
def test_summary_sizes_are_checked(options: dict[str, int]) -> None:
    """They must be positive."""
    with pytest.raises(InvalidInputError):
        Summarise(_raises, **options)  # type: ignore[arg-type]  # each of them is an int


# --- symbols


def test_symbols() -> None:
    """Each omitted message has a line, with tools, media and the first words."""
    history = Messages(
        Message.user(
            "What is\n  in this picture? " * 9, Image.from_url("https://example.com/x.png")
        ),
        Message.assistant(
            tool_calls=[ToolCall.create("x", "look", {}), ToolCall.create("y", "find", {})]
        ),
        Message.tool(ToolResult("x", "a cat"), ToolResult("y", "nothing")),
        Message.assistant("A cat. " * 40),
        Message.user("Thanks!"),
    )
    made = run(truncate(history, limit=150, strategy=Symbolise(preview=20, max_tokens=100)))
    heading, *lines = made.notes[0].text.split("\n")
    assert heading.startswith("(4 earlier messages were left out here.")
    assert lines == [
        "user (image): What is in this p…",
        "tool_call (look, find)",
        "tool_result (look, find): a cat nothing",
        "assistant: A cat. A cat. A cat…",
    ]


def test_symbols_continue() -> None:
    """Later lines follow earlier ones, and the oldest are dropped if there are too many."""
    strategy = Symbolise(preview=5, max_tokens=65)
    made = _cut(strategy, room_for("s u3 a3 u4 a4 u5 a5 u6 a6", _SIX))
    made = _cut(strategy, _ROOM, made)
    lines = body_of(made.notes[0]).split("\n")
    assert [kind_of(note) for note in made.notes] == ["symbols"]
    assert lines[-2:] == ["user: u4:7…", "assistant: a4:8…"]
    assert 2 < len(lines) < made.left_out


def test_symbols_without_room() -> None:
    """If there is no room for lines, a marker replaces them."""
    made = _cut(Symbolise(max_tokens=5_000))
    assert kind_of(made.notes[0]) == "marker"
    assert kind_of(_cut(Symbolise(max_tokens=4)).notes[0]) == "marker"


def test_symbols_sizes_are_checked() -> None:
    """They can't be negative."""
    with pytest.raises(InvalidInputError):
        Symbolise(preview=-1)


# --- chains


@pytest.mark.parametrize(
    ("strategy", "waits"),
    [
        (FitWindow(), True),
        (LastTurns(3), False),
        (Chained(FitWindow(), FitWindow(rounds=True)), True),
        (Chained(FitWindow(), LastTurns(3)), False),
        (Chained(Chained(FitWindow()), FitWindow()), True),
    ],
)
def test_which_strategies_wait_until_the_window_is_exceeded(
    strategy: Strategy, waits: bool
) -> None:
    """Then a window that is known to fit need not be counted; a chain waits if all of it does."""
    assert acts_when_exceeded(strategy) is waits


def test_chain() -> None:
    """Each strategy continues where the previous one ended."""
    assert _window(Chained(LastTurns(3), LastTurns(1)), _PLENTY) == "s * u6 a6"
    assert repr(Chained(LastTurns(3), FitWindow())) == "Chained(LastTurns, FitWindow)"


# --- custom functions


def _last(number: int) -> Any:
    return lambda messages, _tokens, _config: messages[-number:]


def test_callback() -> None:
    """The function gets the window, its tokens and the settings, and returns what to keep."""
    seen: list[tuple[str, int, Any]] = []

    def keep(messages: Messages, tokens: int, config: Any) -> Iterable[Message]:
        seen.append((words(messages), tokens, config))
        return [messages[1], *messages[-2:]]

    made = _cut(Callback(keep), config="settings")
    assert words(made.apply(_SIX)) == "s u1 a1 * u6 a6"
    ((shown, tokens, config),) = seen
    assert (shown, config) == (words(_SIX), "settings")
    assert tokens > _ROOM


def test_callback_is_called_only_if_needed() -> None:
    """Not while the window fits."""
    assert _cut(Callback(_raises_at_once), _PLENTY) is NOTHING_CUT


def _raises_at_once(_messages: Messages, _tokens: int, _config: Any) -> list[Message]:
    raise AssertionError


def test_async_callback() -> None:
    """The function may be a coroutine function."""

    async def keep(messages: Messages, _tokens: int, _config: Any) -> Messages:
        await asyncio.sleep(0)
        return messages[-2:]

    made = asyncio.run(truncate(_SIX, limit=_ROOM, strategy=Callback(keep)))
    assert words(made.apply(_SIX)) == "s * u6 a6"


def test_callback_keeps_complete_turns() -> None:
    """A turn with any kept message is kept whole, and so is the last."""
    assert _window(Callback(_last(3))) == "s * u5 a5 u6 a6"
    assert _window(Callback(lambda _m, _t, _c: [])) == "s * u6 a6"


def test_callback_adds_a_summary() -> None:
    """Its own messages replace the omitted ones; a marker is optional."""
    summed_up = Message.user("so far")
    strategy = Callback(lambda messages, _t, _c: [summed_up, *messages[-2:]], marker=False)
    made = _cut(strategy)
    assert made.notes == (summed_up,)
    assert words(made.apply(_SIX)) == "s * u6 a6"


def test_callback_that_keeps_everything() -> None:
    """The default strategy does the rest."""
    assert _window(Callback(lambda messages, _t, _c: messages)) == _window(FitWindow())


def test_callback_that_returns_none() -> None:
    """The default strategy is used."""
    assert _window(Callback(lambda _m, _t, _c: None)) == _window(FitWindow())


def test_callback_that_changes_messages() -> None:
    """Changed messages are an error: a cut can only choose."""
    with pytest.raises(InvalidInputError, match="change"):
        _cut(Callback(lambda messages, _t, _c: [messages[-1].replace(parts=("other words",))]))
