"""Decode, change one thing, encode: exactly that changed, in every dialect and for every field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import Message, Request, Text
from dragoman.errors import WireError
from dragoman.model.requests import Output, ThinkingConfig
from dragoman.model.tools import ToolChoice
from tests.corpus import Corpus, CorpusNotFoundError
from tests.wire import odd_spellings
from tests.wire.recorded import Body, bodies, normal
from tests.wire.rereading import Kind, verdicts

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
DIALECTS = dragoman.dialects()


def hand_made(dialect: str, kind: Kind) -> Iterator[tuple[str, dict[str, Any], str | None]]:
    """The fixtures, which were written by hand."""
    for path in sorted((FIXTURES / dialect).glob("*.json")):
        fixture = json.loads(path.read_text(encoding="utf-8"))
        if fixture["canonical"]["kind"].lower() == kind:
            yield path.stem, fixture["wire"], fixture.get("path")


def problems(dialect: str, kind: Kind, wire: Any, path: str | None, share: int = 1) -> list[str]:
    """The problems found with every n-th of the edits of a body."""
    found = verdicts(dragoman.dialect(dialect), kind, wire, path, share=share)
    return [f"{edit}: {problem}" for edit, problem in found if problem is not None]


def params(kind: Kind) -> list[Any]:
    """Every body of every dialect."""
    rich = [
        pytest.param(dialect, wire, path, id=f"{dialect}-{label}")
        for dialect in DIALECTS
        for label, wire, path in hand_made(dialect, kind)
    ]
    if kind != "request":
        return rich
    odd = [(dialect, body) for dialect in DIALECTS for body in odd_spellings.bodies(dialect)]
    return rich + [
        pytest.param(dialect, wire, path, id=f"{dialect}-{label}")
        for dialect, (label, wire, path) in odd
    ]


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("dialect", "wire", "path"), params("request"))
def test_an_edit_of_a_request_changes_only_that(
    dialect: str, wire: dict[str, Any], path: str | None, share: int
) -> None:
    """Any field in the request can be edited, in rich and in oddly spelled bodies."""
    assert problems(dialect, "request", wire, path, share) == []


@pytest.mark.parametrize(("dialect", "wire", "path"), params("response"))
def test_an_edit_of_a_response_changes_only_that(
    dialect: str, wire: dict[str, Any], path: str | None
) -> None:
    """Any field in the response can be edited, and the body has the new value."""
    assert problems(dialect, "response", wire, path) == []


def recorded(kind: Kind, dialect: str, share: int) -> Iterator[Body]:
    """Every n-th of the recorded bodies; none without the corpus."""
    try:
        corpus = Corpus.open()
    except CorpusNotFoundError:
        pytest.skip("no recorded traffic")
    found = (body for body in bodies(corpus, dialect) if body.kind == kind)
    yield from islice(found, 0, None, share)


def check_recorded(kind: Kind, dialect: str, share: int) -> None:
    """Fail with the first problems of each body."""
    found = [
        f"{body.recording.row.file}: {problem}"
        for body in recorded(kind, dialect, share)
        for problem in problems(dialect, kind, body.wire, body.path)[:3]
    ]
    assert found == []


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_an_edit_of_a_recorded_body_changes_only_that(kind: Kind, dialect: str) -> None:
    """As above, for a sample of recorded bodies."""
    check_recorded(kind, dialect, 97)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", ["request", "response"])
def test_an_edit_of_any_recorded_body_changes_only_that(kind: Kind, dialect: str) -> None:
    """As above, for all recorded bodies."""
    check_recorded(kind, dialect, 1)


_UNREAD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("openai-chat", {"response_format": {"type": "grammar", "a": 1}}, {"output": Output()}),
    ("openai-chat", {"tool_choice": {"type": "odd", "a": 1}}, {"tool_choice": ToolChoice("none")}),
    ("openai-chat", {"thinking": {"type": "weird"}}, {"thinking": ThinkingConfig(effort="low")}),
    ("openai-chat", {"stop": ["END", 5]}, {"stop": ("STOP",)}),
    ("openai-chat", {"temperature": "hot"}, {"temperature": 0.5}),
    ("openai-chat", {"model": 5}, {"model": "gpt-5"}),
    ("openai-responses", {"text": {"format": {"type": "grammar", "a": 1}}}, {"output": Output()}),
    ("openai-responses", {"tool_choice": {"type": "weird"}}, {"tool_choice": ToolChoice("none")}),
    ("anthropic", {"tool_choice": {"type": "weird", "a": 1}}, {"tool_choice": ToolChoice("none")}),
    ("anthropic", {"thinking": {"type": "weird"}}, {"thinking": ThinkingConfig(enabled=False)}),
    ("anthropic", {"stop_sequences": "END"}, {"stop": ("STOP",)}),
    ("gemini", {"generationConfig": {"stopSequences": ["END", 5]}}, {"stop": ("STOP",)}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "weird"}}},
     {"tool_choice": ToolChoice("none")}),
    ("ollama", {"format": "grammar"}, {"output": Output(format="json")}),
    ("ollama", {"think": "weird"}, {"thinking": ThinkingConfig(enabled=False)}),
    ("ollama", {"options": {"stop": "END"}}, {"stop": ("STOP",)}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "unread", "settings"), _UNREAD)
def test_an_edit_replaces_unreadable_values(
    dialect: str, unread: dict[str, Any], settings: dict[str, Any]
) -> None:
    """The new value replaces the odd one as a whole; nothing of the old value is mixed in."""
    speaker = dragoman.dialect(dialect)
    label, plain, path = next(iter(odd_spellings.bodies(dialect)))
    assert label == "minimal"
    edited = [
        speaker.decode_request(body, path=path).with_settings(**settings)
        for body in ({**plain, **unread}, plain)
    ]
    odd, usual = (speaker.encode_request(request, repair=False).body for request in edited)
    assert odd == usual


_TWICE: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("openai-chat", {"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": 7},
     {"max_completion_tokens": 7}),
    ("openai-chat", {"max_tokens": 5, "max_completion_tokens": 9}, {"max_tokens": None}, {}),
    ("openai-chat", {"reasoning_effort": "low", "reasoning": {"effort": "high"}},
     {"thinking": None}, {}),
    ("gemini", {"generationConfig": {"topK": 3, "top_k": 3}}, {"top_k": 4},
     {"generationConfig": {"topK": 4}}),
    ("gemini", {"model": "models/gemini-3"}, {"model": "gemini-4"}, {}),
    ("anthropic", {"output_format": {"type": "json_schema", "schema": {"type": "object"}},
                   "output_config": {"format": {"type": "json_schema",
                                                "schema": {"type": "object"}}}},
     {"output": None}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "twice", "settings", "expected"), _TWICE)
def test_an_edit_changes_both_spellings(
    dialect: str, twice: dict[str, Any], settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    """If a body has a setting in two spellings, neither keeps the old value."""
    speaker = dragoman.dialect(dialect)
    _, plain, _ = next(iter(odd_spellings.bodies(dialect)))
    request = speaker.decode_request({**plain, **twice})
    assert normal(speaker.encode_request(request, repair=False).body) == normal({**plain, **twice})
    edited = speaker.encode_request(request.with_settings(**settings), repair=False)
    assert normal(edited.body) == normal({**plain, **expected})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stored_request_round_trips(dialect: str) -> None:
    """An oddly spelled body, stored and loaded, is encoded as it came."""
    speaker = dragoman.dialect(dialect)
    for _, wire, path in odd_spellings.bodies(dialect):
        request = Request.from_json(speaker.decode_request(wire, path=path).to_json())
        assert normal(speaker.encode_request(request, repair=False).body) == normal(wire)


def test_missing_fields_of_an_answer_can_be_set() -> None:
    """Fields that the wire left out are written after they have been set."""
    chat = dragoman.dialect("openai-chat")
    answer = chat.decode_response({"choices": [{"finish_reason": "content_filter"}]})
    assert chat.encode_response(answer).body == {"choices": [{"finish_reason": "content_filter"}]}
    (choice,) = answer.choices
    message = choice.message.replace(parts=(Text("No."),))
    edited = answer.replace(model="m", id="r", choices=(choice.replace(message=message),))
    body = chat.encode_response(edited).body
    assert (body["model"], body["id"]) == ("m", "r")
    assert body["choices"][0]["message"]["content"] == "No."


_ODD = {"odd": ["odd"]}
_OFF = {"thinking": ThinkingConfig(effort="none"), "output": Output()}  # often in other fields
_SAID = ("messages", "contents", "input")  # the conversation, which has parts of its own


def misspelled(wire: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """The body with one of its settings, or of the fields inside one, turned into nonsense.

    Objects are not replaced, as an object with an unknown field is still valid there.
    """
    for key, value in wire.items():
        if key in _SAID or not says(value):
            continue
        if not isinstance(value, dict):
            yield (key,), {**wire, key: _ODD}
            continue
        for name, inner in value.items():
            if says(inner) and not isinstance(inner, dict):
                yield (key, name), {**wire, key: {**value, name: _ODD}}


def says(value: Any) -> bool:
    """Whether a value has anything but nulls in it."""
    return any(map(says, value.values())) if isinstance(value, dict) else value is not None


def at(body: Any, place: tuple[str, ...]) -> Any:
    """The value at a place in a body; None if there is none."""
    for key in place:
        body = body.get(key) if isinstance(body, dict) else None
    return body


_ALL = Request(model="m", messages=(Message.user("Hello"),)).with_settings(
    max_tokens=7, temperature=0.5, top_p=0.5, top_k=3, stop=("END",), seed=5,
    presence_penalty=0.5, frequency_penalty=0.5, stream=True, tool_choice=ToolChoice("auto"),
    thinking=ThinkingConfig(effort="low"), output=Output(schema={"type": "object"}),
)  # fmt: skip


def all_settings() -> list[Any]:
    """A body of each dialect with all settings."""
    bodies = {name: dragoman.dialect(name).encode_request(_ALL, repair=False) for name in DIALECTS}
    return [
        pytest.param(dialect, encoded.body, None, id=f"{dialect}-all settings")
        for dialect, encoded in bodies.items()
    ]


@pytest.mark.parametrize(("dialect", "wire", "path"), [*params("request"), *all_settings()])
def test_an_edit_replaces_nonsense_in_a_setting(
    dialect: str, wire: dict[str, Any], path: str | None
) -> None:
    """Once the setting has a value, the nonsense in its place is not sent.

    Settings that several dialects share may be left out, if that is reported.
    """
    speaker = dragoman.dialect(dialect)
    usual = speaker.decode_request(wire, path=path)
    for place, body in misspelled(wire):
        try:
            odd = speaker.decode_request(body, path=path)
        except WireError:
            continue  # it is refused
        assert at(normal(speaker.encode_request(odd, repair=False).body), place) == _ODD
        settings = [
            name for name in Request.__struct_fields__ if name not in {"extras", "messages"}
        ]
        hidden = {
            name: getattr(usual, name)
            for name in settings
            if getattr(usual, name) != getattr(odd, name)
        }
        for changes in (hidden, {name: _OFF[name] for name in hidden if name in _OFF}):
            if changes:  # otherwise it is meaningless anyway
                edited = speaker.encode_request(odd.replace(**changes), repair=False)
                is_told = any(loss.path.startswith(tuple(changes)) for loss in edited.losses)
                assert at(normal(edited.body), place) != _ODD or is_told, (place, list(changes))
