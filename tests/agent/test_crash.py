"""Runs killed with SIGKILL: no tool runs twice, no result is invented, and the run can be resumed.

A short version; `make torture` runs it with many more kills.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from dragoman import (
    Agent,
    ConversationHistory,
    FinishReason,
    Message,
    SessionIdentity,
    ToolDefinition,
    tool,
)
from dragoman.agent.round_records import UNKNOWN
from dragoman.agent.tool_round import CUT_OFF
from tests.agent.cutting import Report
from tests.agent.scripts import asks, call, model, weather
from tests.agent.torture import (
    MOMENTS,
    Player,
    Runner,
    Scene,
    check_broken,
    check_whole,
    noted,
    real,
    results_in,
    stored,
)
from tests.history.torture import IN_FULL, PLACES, Place

KILLS = 100 if IN_FULL else 3
_MOST_EVENTS = 70
"""About as many as a whole run has."""
_LIMITS = (None, 2, 1)
_MOMENTS = [
    (moment, limit)
    for row, moment in enumerate(MOMENTS)
    for column, limit in enumerate(_LIMITS)
    if IN_FULL or (row + column) % len(_LIMITS) == 0
]
chance = Random()


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A fresh place on the requested backend."""
    with PLACES[request.param](tmp_path) as place:
        yield place


def check_now(scene: Scene) -> None:
    """Checks what must hold after a kill at any time."""
    check_broken(asyncio.run(stored(scene.place)), noted(scene.log))


def resume(scene: Scene) -> None:
    """Resumes to the end and checks the result."""
    asyncio.run(Player(scene._replace(dies_at="")).play())
    check_whole(asyncio.run(stored(scene.place)), noted(scene.log))


@pytest.mark.parametrize("place", ["sqlite", "files", "postgres"], indirect=True)
def test_a_run_killed_anywhere_can_be_resumed(place: Place, tmp_path: Path) -> None:
    """The run may be killed several times, also while it is resumed."""
    kills = number = 0
    while kills < KILLS:
        number += 1
        fresh = place._replace(session=SessionIdentity(scope=place.mark, chat=str(number)))
        scene = Scene(fresh, tmp_path / f"{number}.log", chance.choice(_LIMITS),
                      streams=chance.random() < 0.5)  # fmt: skip
        for _ in range(chance.choice((1, 1, 2, 3))):
            with Runner(scene) as runner:
                runner.wait_for(1)
                kills += runner.wait_for(chance.randrange(_MOST_EVENTS))
                sleep(chance.random() * 0.005)
            check_now(scene)
        resume(scene)


@pytest.mark.parametrize(("moment", "limit"), _MOMENTS)
def test_a_run_killed_at_a_given_moment_can_be_resumed(
    moment: str, limit: int | None, tmp_path: Path
) -> None:
    """Started calls without a result are unknown; calls that weren't started are run."""
    with PLACES["sqlite"](tmp_path) as place:
        scene = Scene(place, tmp_path / "log", limit, dies_at=MOMENTS[moment])
        with Runner(scene) as runner:
            assert runner.wait_for_death() == -signal.SIGKILL
        lines = noted(scene.log)
        check_now(scene)
        before = dict(results_in(asyncio.run(stored(place))))
        resume(scene)
        after = dict(results_in(asyncio.run(stored(place))))
    assert before.items() <= after.items()  # stored results are kept
    what, _, id = scene.dies_at.partition(" ")
    if what in {"begin", "end"}:
        assert f"{what} {id}" in lines
        assert after[id] == UNKNOWN
    elif what == "finished":
        assert after[id] == real(id)
    unknown = {id for id, text in after.items() if text == UNKNOWN}
    if limit == 1:  # sequential: only the running call is unknown
        assert unknown <= {id}


def test_a_run_that_is_not_killed_has_all_results(tmp_path: Path) -> None:
    """Without a kill, all tools run and all results are real."""
    with PLACES["sqlite"](tmp_path) as place:
        scene = Scene(place, tmp_path / "log")
        resume(scene)
        found = dict(results_in(asyncio.run(stored(place))))
    assert UNKNOWN not in found.values()


# --- states after a crash that a kill rarely hits


async def test_a_stored_output_is_not_requested_again() -> None:
    """A stored output call is the output when the run is resumed, without a request."""
    history = ConversationHistory(
        [Message.user("Where?"), asks(call("return_result", "a", city="Basel"))], policy="lenient"
    )
    nobody = model()
    result = await Agent(nobody, output=Report).send(history=history)
    assert result.output == Report("Basel")
    assert nobody.requests == []
    assert [each.is_error for each in history.messages[-1].tool_results] == [False]


async def test_a_new_prompt_gets_its_own_output() -> None:
    """An output stored before a new prompt isn't the answer to that prompt."""
    own = Agent(
        model(asks(call("return_result", "c", city="Bern"))),
        tools=[weather, ToolDefinition("ask_user", "Asks.", {"type": "object"})],
        output=Report,
    )
    calls = asks(call("return_result", "a", city="Basel"), call("ask_user", "b"))
    history = ConversationHistory([Message.user("Where?"), calls], policy="lenient")
    result = await own.send("And now?", history=history, results={"b": "Nowhere."})
    assert result.output == Report("Bern")


@pytest.mark.parametrize("output", [None, Report])
async def test_calls_of_a_truncated_answer_are_not_run_when_resumed(output: Any) -> None:
    """Calls of a stored truncated answer are rejected (I7)."""
    ran: list[str] = []

    @tool
    def pay(to: str) -> str:
        """Pay somebody."""
        ran.append(to)
        return "paid"

    cut = asks(call("pay", "a", to="Bo"), call("return_result", "b", city="B"))
    history = ConversationHistory(
        [Message.user("Pay Bob."), cut.replace(finish=FinishReason.LENGTH)], policy="lenient"
    )
    again = model(asks(call("return_result", "c", city="Basel")) if output else "Sorry.")
    result = await Agent(again, tools=[pay], output=output).send(history=history)
    assert ran == []
    assert result.output == (Report("Basel") if output else "Sorry.")
    assert {text for id, text in results_in(history.messages) if id in "ab"} == {CUT_OFF}
