"""A window, encoded in every dialect, needs no repair that the whole history did not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman.errors import ContextTooSmall
from dragoman.history.truncation import FitWindow, Strategy, fit, truncate
from dragoman.model.collection import Messages
from dragoman.model.messages import Message
from dragoman.model.requests import Request, ThinkingConfig
from dragoman.wire.fitting.content import _BLANK
from dragoman.wire.fitting.pairing import PLACEHOLDERS
from dragoman.wire.fitting.turns import ENDING, OPENING, READ
from tests.history.truncation.histories import STRATEGIES, Case, cases, run
from tests.history.truncation.talks import room_for, talk, words

PUT_IN = (_BLANK, ENDING, OPENING, READ, *PLACEHOLDERS)
"""What repairs say for those who said nothing."""
THINKING = st.sampled_from([None, ThinkingConfig(enabled=True, budget=2048)])


def _repairs(dialect: str, messages: Messages, thinking: ThinkingConfig | None) -> set[str]:
    """What is omitted or moved, and what is added."""
    request = Request(model="m", messages=tuple(messages), thinking=thinking)
    encoded = dragoman.dialect(dialect).encode_request(request)
    body = encoded.to_bytes().decode()
    lost = {re.sub(r"\d+", "n", loss.reason) for loss in encoded.losses}
    return lost | {text for text in PUT_IN if text in body}


@pytest.mark.parametrize("dialect", dragoman.dialects())
@given(case=cases(), strategy=st.sampled_from([*STRATEGIES]), thinking=THINKING)
def test_needs_no_further_repair(
    dialect: str, case: Case, strategy: str, thinking: ThinkingConfig | None
) -> None:
    """Every repair of the window is also one of the whole history."""
    messages, limit = case
    try:
        made = run(truncate(messages, limit=limit, strategy=STRATEGIES[strategy]))
    except ContextTooSmall:
        return
    window = made.apply(messages)
    if made.left_out:
        assert _repairs(dialect, window, thinking) <= _repairs(dialect, messages, thinking)


@pytest.mark.parametrize("dialect", dragoman.dialects())
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_a_valid_history_has_a_valid_window(dialect: str, strategy: Strategy) -> None:
    """The window of a history that every target accepts needs no repair."""
    talk = Messages.of(
        message
        for turn in range(20)
        for message in (
            Message.user(f"question {turn}"),
            Message.assistant(f"answer {turn} " * 20),
        )
    ).append(Message.user("and now?"))
    window = fit(talk, 400, strategy=strategy)
    assert len(window) < len(talk)
    assert _repairs(dialect, window, None) == set()


def test_pinned_turn_keeps_its_end() -> None:
    """A pinned turn that ends with calls is not taken for the current one (W51)."""
    history = talk("u1! a+x t+x u2 a2 u3 a3 u4")
    window = fit(history, room_for("u1! a+x t+x u2 a2 * u4", history), strategy=FitWindow(slack=0))
    assert words(window) == "u1! a+x t+x u2 a2 * u4"
    thinking = ThinkingConfig(enabled=True, budget=2048)
    assert _repairs("anthropic", window, thinking) == set()
    torn = Messages.of(message for message in window if message.id not in {"u2:3", "a2:4"})
    assert _repairs("anthropic", torn, thinking)
