"""What the programs share: jobs come as lines of JSON, and so do their results.

A program runs with one library in a virtual environment of its own. A job names the gateway's URL,
the model, the front, the scenario, and whether to stream; a result has the text, the thinking, or
the library's error.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

QUESTION = "How warm is it in Mostar?"
KEY = "none"
Play = Callable[[Any], Mapping[str, Any]]


def weather(city: str) -> str:
    """Tell the temperature in a city."""
    return f"31 °C in {city}"


def said(text: Any, thinking: Any = "") -> dict[str, Any]:
    """The result of a job."""
    return {"text": str(text or ""), "thinking": str(thinking or "")}


def _failed(error: BaseException) -> dict[str, Any]:
    """The library's exception, with the HTTP status that it or one of its causes has."""
    found: BaseException | None = error
    status = None
    while found is not None and status is None:
        named = (getattr(found, name, None) for name in ("status_code", "code", "status"))
        status = next((each for each in named if isinstance(each, int)), None)
        found = found.__cause__ or found.__context__
    return {"error": type(error).__name__, "status": status, "message": str(error)[:500]}


def serve(fronts: Mapping[str, Play]) -> None:
    """Do jobs until there are no more."""
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print; only results go to standard output
    for line in sys.stdin:
        job = SimpleNamespace(**json.loads(line))
        try:
            result = dict(fronts[job.front](job))
        except Exception as error:  # noqa: BLE001 - whatever a library raises is the result
            result = _failed(error)
        answers.write(json.dumps(result) + "\n")
        answers.flush()
