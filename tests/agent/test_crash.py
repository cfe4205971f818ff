"""kill -9 in the middle of a run: no tool runs twice, nothing is made up, and it goes on.

In short here; `make torture` does it as often as was promised.
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
    """A fresh one on the backend that is asked for."""
    with PLACES[request.param](tmp_path) as place:
        yield place


def check_now(scene: Scene) -> None:
    """What is true after a kill, whenever it was."""
    check_broken(asyncio.run(stored(scene.place)), noted(scene.log))


def resume(scene: Scene) -> None:
    """Go on to the end, and look at what came of it."""
    asyncio.run(Player(scene._replace(dies_at="")).play())
    check_whole(asyncio.run(stored(scene.place)), noted(scene.log))


@pytest.mark.parametrize("place", ["sqlite", "files", "postgres"], indirect=True)
def test_a_run_that_is_killed_anywhere_goes_on(place: Place, tmp_path: Path) -> None:
    """Once or several times, in one run or in the resumed ones, whatever it was doing."""
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
def test_a_run_that_is_killed_at_a_moment_goes_on(
    moment: str, limit: int | None, tmp_path: Path
) -> None:
    """Exactly what was begun and has no result is unknown; what was not begun is run."""
    with PLACES["sqlite"](tmp_path) as place:
        scene = Scene(place, tmp_path / "log", limit, dies_at=MOMENTS[moment])
        with Runner(scene) as runner:
            assert runner.wait_for_death() == -signal.SIGKILL
        lines = noted(scene.log)
        check_now(scene)
        before = dict(results_in(asyncio.run(stored(place))))
        resume(scene)
        after = dict(results_in(asyncio.run(stored(place))))
    assert before.items() <= after.items()  # what was written stays
    what, _, id = scene.dies_at.partition(" ")
    if what in {"begin", "end"}:
        assert f"{what} {id}" in lines
        assert after[id] == UNKNOWN
    elif what == "finished":
        assert after[id] == real(id)
    unknown = {id for id, text in after.items() if text == UNKNOWN}
    if limit == 1:  # one at a time: nothing is unknown but the one that was being run
        assert unknown <= {id}


def test_a_run_that_is_not_killed_knows_everything(tmp_path: Path) -> None:
    """The scene itself: all tools run, and all results are real."""
    with PLACES["sqlite"](tmp_path) as place:
        scene = Scene(place, tmp_path / "log")
        resume(scene)
        found = dict(results_in(asyncio.run(stored(place))))
    assert UNKNOWN not in found.values()


# --- what a crash may leave, and a kill hardly ever hits


async def test_an_output_that_was_stored_is_not_asked_for_again() -> None:
    """The program stopped between the call that returns the output and what is said to it."""
    history = ConversationHistory(
        [Message.user("Where?"), asks(call("return_result", "a", city="Basel"))], policy="lenient"
    )
    nobody = model()
    result = await Agent(nobody, output=Report).send(history=history)
    assert result.output == Report("Basel")
    assert nobody.requests == []
    assert [each.is_error for each in history.messages[-1].tool_results] == [False]


async def test_a_prompt_with_decisions_asks_for_an_output_of_its_own() -> None:
    """The output that was stored is told to have been received, and is not the answer to it."""
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
async def test_calls_of_an_answer_that_was_cut_off_are_not_run_later(output: Any) -> None:
    """I7 holds as well where the program stopped before it could refuse them."""
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
