"""Libraries of others, in their newest versions, on every front and with every provider.

Each is installed when these tests run (`tests/pypi.py`, `tests/npm.py`), since they exclude each
other, and are skipped where they can't be. What works is listed in the documentation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.gateway.libraries.clients import LIBRARIES, Library, is_tried
from tests.gateway.libraries.running import Programs
from tests.gateway.matrix.behind import BACKS, Answer, Behind, either
from tests.gateway.matrix.failing import failure
from tests.gateway.matrix.native import MODELS, THOUGHT, Said
from tests.gateway.matrix.scenarios import FINAL

pytestmark = pytest.mark.slow
WEATHER = {"city": "Mostar", "celsius": 31}
SAID = {
    "text": (FINAL,),
    "tools": (Said(calls=(("weather", {"city": "Mostar"}),)), FINAL),
    "thinking": (FINAL._replace(thinks=True),),
    "turns": (Said("I think it is warm.", thinks=True), FINAL),
    "structured output": (Said(calls=(("Weather", WEATHER),)),),
    "json": (Said(json.dumps(WEATHER)),),
}


def _cases() -> Iterator[object]:
    for library in LIBRARIES:
        for front in library.fronts:
            for scenario in library.scenarios:
                if is_tried(library, front, scenario):
                    yield pytest.param(
                        library, front, scenario, id=f"{library.name}-{front}-{scenario}"
                    )


def _answers(back: str, scenario: str) -> list[Answer]:
    if scenario == "error":
        return [failure(back, 400)]  # others are sent again, by most
    return [either(back, said) for said in SAID[scenario]]


@pytest.mark.parametrize(("library", "front", "scenario"), [*_cases()])
def test_a_library(
    served: tuple[str, Behind], running: Programs, library: Library, front: str, scenario: str
) -> None:
    """It shows the provider's answer, and no provider gets a request that it would refuse."""
    url, behind = served
    for back in BACKS:
        for stream in (False, True):
            behind.script(back, MODELS[back], *_answers(back, scenario))
            found = running.play(
                library, front=front, url=url, model=MODELS[back], scenario=scenario, stream=stream
            )
            where = (back, stream, found)
            if scenario == "error":
                assert found.get("status") == 400, where
                continue
            assert "error" not in found, where
            if scenario in {"structured output", "json"}:
                assert json.loads(found["text"]) == WEATHER, where
            else:
                assert found["text"].strip() == FINAL.text, where
            if scenario == "thinking":
                assert found["thinking"].strip() == THOUGHT, where
            assert not [each.problems for each in behind.asked if each.problems], where
