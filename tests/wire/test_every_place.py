"""Wrong values at every place of every body: only our own errors, and no exploding work.

See `tests.wire.every_place`, which runs all of it and prints what it finds.
"""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

import dragoman
from dragoman import Front, Request
from dragoman.errors import InvalidInputError
from dragoman.model.jsontext import dumps
from tests.wire import every_place, mutations
from tests.wire.test_mutations import _watchdog as _watchdog  # noqa: PLC0414 - a fixture

_SAMPLE = 120
_PARTS = 64
_TAKEN = range(0, _PARTS, 1 if os.environ.get("DRAGOMAN_PROFILE") == "torture" else 8)


@pytest.mark.parametrize("part", range(2))
def test_a_sample_of_all_places(part: int) -> None:
    """Odd values anywhere in what was recorded or made raise only our own errors."""
    for number in range(part * _SAMPLE, (part + 1) * _SAMPLE):
        case = every_place.one(number)
        if case is not None:
            every_place.take(case, number)


@pytest.mark.thorough
@pytest.mark.parametrize("part", _TAKEN)
def test_all_places(part: int) -> None:
    """As above, with an eighth of the 860,000 cases; all of them take forty minutes of CPU."""
    for number, case in every_place.sampled(part, _PARTS):
        every_place.take(case, random.Random(number).randrange(1000))


@pytest.mark.parametrize("change", every_place.CHANGES)
def test_every_change_changes(change: str) -> None:
    """Each of them makes another body of a text, a number, an object or a list in it."""
    body = {"a": "x5", "b": 7, "c": {"d": [1]}, "e": [{"f": -2}]}
    places = [path for path, _ in every_place.paths_in(body)]
    made = {every_place.changed(body, path, change)[1] for path in places}
    assert len(made) > len(places) / 2
    assert json.dumps(body).encode() not in made


# --- found by it


@pytest.mark.parametrize("count", [10**400, 2**63, -1, 3, True, 1.0, None, "1", [], {}])
def test_stored_layouts_of_tools_with_odd_counts(count: Any) -> None:
    """Tools are written without their layout if what was stored of it can't be right."""
    tool = {"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}
    body = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}], "tools": [tool, {}]}
    request = dragoman.dialect("gemini").decode_request(body)
    stored = json.loads(request.to_json())
    stored["value"]["extras"]["gemini spelling"]["tools"][0]["count"] = count
    encoded = dragoman.dialect("gemini").encode_request(Request.from_json(dumps(stored)))
    (written,) = [each for each in encoded.body["tools"] if each]
    assert written["functionDeclarations"][0]["name"] == "f"


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_half_a_character_in_any_field_of_a_request(dialect: str) -> None:
    """A lone surrogate is kept or refused, wherever the overlay has to remember a field."""
    field = dragoman.dialect(dialect).messages_field
    for name in ("model", "user", "stop", "max_tokens", "max_completion_tokens", "tool_choice"):
        body = {"model": "m", field: [], "tool_choice": {"type": "odd"}, name: "\ud800"}
        every_place.request_taken(dialect, body, dumps(body), 0)


def test_gemini_model_of_half_a_character() -> None:
    """A model's name in a body of Gemini's is not UTF-8."""
    body = {"model": "\ud800", "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    for target in {*dragoman.dialects()} - {"gemini"}:
        encoded = dragoman.translate(body, source="gemini", target=target)
        assert b"\\ud800" in encoded.to_bytes()
    with pytest.raises(InvalidInputError, match="model name"):
        dragoman.translate(body, source="gemini", target="gemini")


@pytest.mark.parametrize("dialect", dragoman.dialects())
def test_keys_that_are_no_texts(dialect: str) -> None:
    """A caller's dict may have any keys: they are refused, or taken for what they look like."""
    speaker = dragoman.dialect(dialect)
    rich = next(each for each in mutations.seeds() if each[:2] == ("request", dialect))
    for path, shape in every_place.paths_in(rich.value):
        if shape.endswith("=dict"):
            body = _with_odd_keys(rich.value, path)
            mutations.attempt("check", speaker.check, body)
            mutations.attempt("decode_request", speaker.decode_request, body)


def _with_odd_keys(body: Any, path: tuple[Any, ...]) -> Any:
    if not path:
        return {5: "x", None: 5, **body}
    made = body.copy()
    made[path[0]] = _with_odd_keys(body[path[0]], path[1:])
    return made


@pytest.mark.parametrize("top", [["x"], [5], [None], [[]], "x", {"a": 1}, [{"candidates": 5}]])
def test_alternatives_of_another_shape(top: Any) -> None:
    """Log probabilities that can't be read are a loss for clients of other dialects."""
    chosen = [{"token": "a", "logProbability": -0.5}]
    result = {"chosenCandidates": chosen, "topCandidates": top}
    body = {"candidates": [{"content": {"parts": [{"text": "a"}]}, "logprobsResult": result}]}
    response = dragoman.dialect("gemini").decode_response(body)
    encoded = dragoman.dialect("openai-chat").encode_response(response)
    assert encoded.body["choices"][0].get("logprobs") is None
    assert any("log probabilities" in str(loss) for loss in encoded.losses)
    assert (
        dragoman.dialect("gemini").encode_response(response).body["candidates"]
        == body["candidates"]
    )


@pytest.mark.parametrize("odd", [{"": {"": None}}, [], ["x"], 5, None, "\ud800"])
def test_items_of_a_stream_with_odd_ids(odd: Any) -> None:
    """An id that is no text names nothing, also where the end lists the items."""
    item = {"type": "message", "role": "assistant", "id": odd, "status": "in_progress",
            "content": []}  # fmt: skip
    events: list[dict[str, Any]] = [
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    ]
    frames = [f"event: {each['type']}\ndata: ".encode() + dumps(each) + b"\n\n" for each in events]
    every_place.stream_taken("openai-responses", b"".join(frames), 0)


@pytest.mark.parametrize("call", [{"function": {"name": 5, "arguments": "{}"}}, {"function": {}}])
def test_odd_calls_of_a_provider_behind_its_own_front(call: dict[str, Any]) -> None:
    """A call that could not be read goes to the client as it came, with its type."""
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    response = dragoman.dialect("openai-chat").decode_response(body)
    request = Request(model="m", messages=(dragoman.Message.user("hi"),))
    encoded = Front("openai-chat", request).response(response)
    assert encoded.body["choices"][0]["message"]["tool_calls"][0]["type"] == "function"
