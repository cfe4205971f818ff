"""The lane and the general path give the same bytes, reports, context and errors."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

import dragoman
from dragoman import Provider, Target
from dragoman.model import media
from dragoman.providers.facts.overrides import override_facts
from dragoman.providers.registry import register
from dragoman.providers.translation import lane_of
from dragoman.wire.lane import requests as lane
from dragoman.wire.lane import switch
from dragoman.wire.lane.attachments import _samples
from dragoman.wire.lane.heads import Heads, sample_of
from dragoman.wire.lane.prefixes import (
    conversations,
    forget_conversations,
    remember_conversations,
)
from dragoman.wire.lane.survey import surveyed
from tests.corpus import Corpus
from tests.wire.lane import requests as lanes
from tests.wire.recorded import bodies

pytestmark = pytest.mark.usefixtures("at_first_sight")
_QUICK, _THOROUGH, _PARTS = 60, 400, 4
_HEAD = {"model": "m", "max_tokens": 100}
_HI = {"role": "user", "content": "Hi"}


def _raw(*messages: Any, **fields: Any) -> bytes:
    return json.dumps({**_HEAD, "messages": messages, **fields}).encode()


# --- equal results


_SOME = (*lanes.DIALECTS, "openai:gpt-5.1", "anthropic:claude-sonnet-4-5", "google:gemini-3-pro")


@pytest.mark.corpus
@pytest.mark.parametrize("source", lanes.DIALECTS)
@pytest.mark.parametrize(
    "targets",
    [
        pytest.param(_SOME, id="some"),
        pytest.param(lanes.TARGETS, id="all", marks=pytest.mark.thorough),
    ],
)
def test_recorded_requests_are_translated_alike(
    corpus: Corpus, source: str, targets: tuple[str, ...]
) -> None:
    """For every dialect and many hosts; and most of them take the lane."""
    count = took = 0
    for body in bodies(corpus, source):
        if body.kind != "request":
            continue
        raw = json.dumps(body.wire).encode()
        for target in targets:
            found = lanes.difference(raw, source, target)
            assert not isinstance(found, str), (body.recording.row.file, target, found)
            count, took = count + 1, took + found.took_lane
    assert took > count // 2


@pytest.mark.parametrize("part", range(_PARTS))
def test_random_requests_are_translated_alike(part: int) -> None:
    """Plain and nearly plain conversations, mutated recordings, and hostile text."""
    _compare(range(part * _QUICK, (part + 1) * _QUICK))


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(_PARTS))
def test_many_random_requests_are_translated_alike(part: int) -> None:
    """As above, more of them."""
    _compare(range(10**6 + part * _THOROUGH, 10**6 + (part + 1) * _THOROUGH))


def _compare(numbers: range) -> None:
    seeds = lanes.request_seeds()
    for number in numbers:
        rng = random.Random(number)
        raw, source, target = lanes.random_case(rng, seeds)
        found = lanes.difference(raw, source, target, repair=rng.random() < 0.9)
        assert not isinstance(found, str), (number, source, target, found)


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"{", b"[]", b"null", b"{}",
        b'{"messages": 5}', b'{"messages": ""}', b'{"messages": []}',
        b'{"messages": [5]}', b'{"messages": {}}',
        _raw(), _raw(_HI, temperature=0).replace(b": 0", b": 1e400"),
        _raw({"role": "user", "content": "\ud800"}), _raw({"role": "user", "content": ["\ud800"]}),
        b"\xef\xbb\xbf" + _raw(_HI), _raw(_HI).replace(b"Hi", b"\xff"),
        b'{"messages": [{"role": "user", "content": "1"}], "messages": [{"role": "user"}]}',
        b'{"messages": [{"role": "system", "role": "user", "content": "x", "content": "y"}]}',
        b'{"messages": [{"role": "user", "content": [{"text": "without a type"}]}]}',
        _raw({"role": "user", "content": [{"type": "impossible", "never": 0}]}),
        _raw({"role": "user", "content": "x", "is_failed": True}), _raw(_HI) + b" x",
        b'{"messages": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", lanes.DIALECTS)
def test_hostile_bodies_are_translated_alike(raw: bytes, target: str) -> None:
    """Huge numbers, lone surrogates, deep nesting and duplicate keys."""
    for repair in (True, False):
        found = lanes.difference(raw, "openai-chat", target, repair=repair)
        assert not isinstance(found, str), found


def test_unknown_fields_leave_the_lane() -> None:
    """An unknown field is never dropped: such a request takes the general path."""
    assert lanes.took_lane(_raw(_HI))
    assert not lanes.took_lane(_raw({**_HI, "unknown": 1}))
    answer = {"role": "assistant", "tool_calls": [_CALLED]}
    result = {"role": "tool", "tool_call_id": "c", "content": "R"}
    assert not lanes.took_lane(_raw(_HI, {**answer, "audio": {"id": "x"}}, result))


def test_each_loss_is_reported() -> None:
    """Thinking of another provider, in three of many answers, is three losses."""
    thought = {"role": "assistant", "content": "A", "reasoning_content": "Hm."}
    raw = _raw(
        _HI, thought, _HI, {"role": "assistant", "content": "B"}, _HI, thought, _HI, thought, _HI
    )
    assert lanes.took_lane(raw)
    losses = dragoman.translate(raw, source="openai-chat", target="anthropic").losses
    assert [loss.path for loss in losses] == [f"messages[{n}].parts[0]" for n in (1, 5, 7)]


def test_failed_and_successful_results_are_distinguished() -> None:
    """Results with `is_error` true and false in one conversation."""

    def round_of(call_id: str, is_error: bool) -> list[Any]:
        call = {"type": "tool_use", "id": call_id, "name": "f", "input": {}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "R"}
        return [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [{**result, "is_error": is_error}]},
        ]

    rounds = [*round_of("a", False), *round_of("b", True), *round_of("c", False)]
    raw = _raw(_HI, *rounds, tools=[{"name": "f", "input_schema": {"type": "object"}}])
    for target in lanes.DIALECTS:
        assert lanes.took_lane(raw, "anthropic", target)
    losses = dragoman.translate(raw, source="anthropic", target="ollama").losses
    assert "messages[4].parts[0].is_error" in {loss.path for loss in losses}


@pytest.mark.parametrize("target", lanes.TARGETS)
def test_results_in_two_messages_are_translated_alike(target: str) -> None:
    """Claude accepts the results of one round only in one message."""
    calls = [{"type": "tool_use", "id": each, "name": "f", "input": {}} for each in "ab"]
    results = [{"type": "tool_result", "tool_use_id": each, "content": "R"} for each in "ab"]
    raw = _raw(
        _HI,
        {"role": "assistant", "content": calls},
        *({"role": "user", "content": [result]} for result in results),
        tools=[{"name": "f", "input_schema": {"type": "object"}}],
    )
    lanes.took_lane(raw, "anthropic", target)
    parts = [{"functionCall": {"name": "f", "id": each, "args": {}}} for each in "ab"]
    answer = {"name": "f", "response": {"output": "R"}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": parts},
        *({"role": "user", "parts": [{"functionResponse": {**answer, "id": n}}]} for n in "ab"),
    ]
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    raw = json.dumps({"contents": contents, "tools": declared}).encode()
    lanes.took_lane(raw, "gemini", target)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_calls_without_ids_take_the_lane(count: int) -> None:
    """They get the ids that the general path derives."""
    calls = [{"name": "f", "args": {"n": n}} for n in range(count)]
    answer = {"name": "f", "response": {"output": "R"}}
    contents = [
        {"role": "user", "parts": [{"text": "Hi"}]},
        {"role": "model", "parts": [{"functionCall": call, "thought": False} for call in calls]},
        {"role": "user", "parts": [{"functionResponse": answer} for _ in calls]},
    ]
    declared = [{"functionDeclarations": [{"name": "f"}]}]
    raw = json.dumps({"contents": contents, "tools": declared}).encode()
    assert lanes.took_lane(raw, "gemini", "anthropic")
    assert lanes.took_lane(raw, "gemini", "openai-responses")
    given = [{"function": {"name": "f", "arguments": call["args"]}} for call in calls]
    results = [{"role": "tool", "tool_name": "f", "content": "R"} for _ in calls]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asked = {"role": "assistant", "content": "", "tool_calls": given}
    raw = _raw(_HI, asked, *results, tools=[tool])
    assert lanes.took_lane(raw, "ollama", "anthropic")
    assert lanes.took_lane(raw, "ollama", "openai-chat")


_LISTED = {"role": "user", "content": [{"type": "text", "text": "},{"}] * 3}
_CALLED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("last", "is_plain"),
    [
        ([_HI], True),
        ([_LISTED], True),
        ([{"role": "user", "content": '},{"role":"user","odd":1}'}], True),
        ([{"role": "user", "content": "word " * 50_000}], True),
        ([{**_HI, "odd": 1}], False),
        ([{**_LISTED, "odd": [{}, {}]}], False),
        ([{"role": "assistant", "tool_calls": [_CALLED]}, {**_HI, "role": "tool"}], False),
    ],
)
@pytest.mark.parametrize("spaces", [(",", ":"), (", ", ": ")])
def test_the_end_of_a_long_conversation_is_checked_first(
    monkeypatch: pytest.MonkeyPatch, last: list[Any], is_plain: bool, spaces: tuple[str, str]
) -> None:
    """An odd end leaves the lane before the rest is decoded; a plain end does not."""
    monkeypatch.setattr(lane, "LONG", 1_000)
    answers = [_HI, {"role": "assistant", "content": "A"}] * 100
    body = {**_HEAD, "messages": [*answers, *last]}
    raw = json.dumps(body, separators=spaces).encode()
    read: list[Any] = []

    def surveying(turns: Any) -> Any:
        read.append(turns)
        return surveyed(turns)

    monkeypatch.setattr(lane, "surveyed", surveying)
    assert lanes.took_lane(raw) == bool(read) == is_plain


def _showing(*parts: Any) -> bytes:
    return _raw({"role": "user", "content": [{"type": "text", "text": "See."}, *parts]})


def _picture(data: str, mime: str = "image/png", **fields: Any) -> dict[str, Any]:
    url = f"data:{mime};base64,{data}"
    return {"type": "image_url", "image_url": {"url": url, **fields}}


_PNG, _JPEG = "iVBORw0KGgo=", "/9j/4AAQSkZJRgAB"


@pytest.mark.parametrize("target", lanes.TARGETS)
@pytest.mark.parametrize(
    "part",
    [
        _picture(_JPEG), _picture(_PNG, "image/jpeg"), _picture(_JPEG + "QU"), _picture("QUJD"),
        _picture(_PNG, detail="low"), _picture(_PNG, detail="odd"), _picture("QUJD", "text/plain"),
        _picture("/w==", "text/plain"), _picture(_PNG, ""),
        {"type": "file", "file": {"filename": "x.txt", "file_data": "data:text/plain;base64,QQ=="}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERi0xLjc="}},
        {"type": "input_audio", "input_audio": {"data": "SUQzBAAA", "format": "wav"}},
        {"type": "image_url", "image_url": {"url": 'https://example.com/"é"'}},
    ],
)  # fmt: skip
def test_media_with_any_data_are_translated_alike(part: Any, target: str) -> None:
    """Wrong types, missing padding, texts and unsupported media."""
    for raw in (_showing(part), _showing(part, part), _raw({"role": "user", "content": [part]})):
        found = lanes.difference(raw, "openai-chat", target)
        assert not isinstance(found, str), found


def test_media_with_options_take_the_lane() -> None:
    """Each part has its own data, and unsupported options are reported for each."""
    parts = [_picture(_PNG, detail="high"), _picture(_JPEG, "image/jpeg"), _picture(_PNG)]
    raw = _showing(*parts, _picture("iVBORw0KGgoAAAA=", detail="low"))
    for target in ("anthropic", "gemini", "openai-responses", "ollama"):
        assert lanes.took_lane(raw, target=target)
    losses = dragoman.translate(raw, source="openai-chat", target="anthropic").losses
    assert [loss.path for loss in losses] == [f"messages[0].parts[{n}].detail" for n in (1, 4)]


def test_samples_have_the_signature_of_their_type() -> None:
    """So the general path treats them like the real data."""
    for mime, _, _ in media._MAGIC:
        assert [media.sniff_base64(sample) for sample in _samples(mime)] == [mime, mime]
    assert [media.sniff_base64(sample) for sample in _samples(None)] == [None, None]


def test_cache_hints_within_the_limit_take_the_lane() -> None:
    """Claude accepts four; with more, the general path leaves out the oldest."""
    text = {"type": "text", "text": "Long."}
    hinted = {**text, "cache_control": {"type": "ephemeral"}}
    answer = {"role": "assistant", "content": "A"}
    for count in range(1, 8):
        for outside in range(3):
            asked = {"role": "user", "content": [hinted, text]}
            raw = _raw(*[asked, answer] * count, _HI, system=[hinted] * outside)
            for target in ("anthropic", "anthropic:claude-sonnet-4-5", "openai-chat", "gemini"):
                found = lanes.difference(raw, "anthropic", target)
                assert not isinstance(found, str), found
                is_host = target.startswith("anthropic")
                assert found.took_lane or (is_host and (count > 2 or outside + 2 > 4))


def test_fields_of_instructions_belong_to_the_head() -> None:
    """Cache hints and names in system messages before the conversation."""
    part = {"type": "text", "text": "Brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    hint = {"cache_control": {"type": "ephemeral"}}
    said: list[dict[str, Any]] = [
        {"content": [part, part]},
        {"content": "Brief.", "name": "n"},
        {"content": "Brief.", **hint},
    ]
    for more in (*said, {"content": []}):
        for target in lanes.TARGETS:
            found = lanes.difference(_raw({"role": "system", **more}, _HI), "openai-chat", target)
            assert not isinstance(found, str), found
    assert lanes.took_lane(_raw({"role": "system", "content": "Brief.", **hint}, _HI))


def test_a_hint_on_a_message_is_that_of_its_part() -> None:
    """The lane leaves such messages to the general path, and takes those after them."""
    hinted = {**_HI, "cache_control": {"type": "ephemeral"}}
    for messages in ([hinted], [_HI, hinted], [hinted, {"role": "assistant", "content": "A"}, _HI]):
        for target in lanes.TARGETS:
            found = lanes.difference(_raw(*messages), "openai-chat", target)
            assert not isinstance(found, str), found


# --- the body


def test_the_body_is_lazy_and_may_be_changed() -> None:
    """Changes to the body are sent."""
    made = dragoman.translate(_raw(_HI), source="openai-chat", target="anthropic")
    assert made._raw is not None
    made.body["messages"][0]["content"] = "Changed."
    assert json.loads(made.to_bytes())["messages"][0]["content"] == "Changed."


def test_unrepaired_conversations_are_passed_unchanged() -> None:
    """The conversation's bytes are kept, with their order and whitespace."""
    messages = b'[ {"content" : "Hi", "odd": [1, 2.50], "role":"user"} ]'
    raw = b'{"model": "m", "messages": ' + messages + b"}"
    made = dragoman.translate(raw, source="openai-chat", target="openai-chat", repair=False)
    assert messages in made.to_bytes()


# --- heads


def test_heads_are_found_by_their_exact_bytes() -> None:
    """Heads with equal samples but different bytes are not mixed up."""
    texts = ["a" * 5_000, "a" * 2_000 + "b" + "a" * 2_999]
    bodies = [_raw(_HI, user=text, metadata={"x": "y" * 300}) for text in texts]
    heads = [json.dumps({**_HEAD, "user": text}).encode() for text in texts]
    assert sample_of(heads[0]) == sample_of(heads[1])
    for raw, text in zip(bodies, texts, strict=True):
        for _ in range(2):
            made = dragoman.translate(raw, source="openai-chat", target="openai-responses")
            assert made.body["user"] == text


def test_heads_are_bounded() -> None:
    """The cache is limited in number and in bytes."""
    heads = Heads(max_heads=10, max_bytes=100_000, max_seen=20)
    for number in range(200):
        fields = b"x" * (number * 50)
        heads.keep((sample_of(fields), number), fields, None)
        heads.was_seen(number)
        assert len(heads) <= 10
        assert heads.size <= 100_000
    huge = b"x" * 90_000
    heads.keep("huge", huge, None)
    assert heads.find("huge", huge) is None
    heads.clear()
    assert (len(heads), heads.size) == (0, 0)


def test_a_head_is_cached_the_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most heads never recur, so short conversations take the lane the second time."""
    monkeypatch.setattr(lane, "LONG", 10**9)
    raw = _raw(_HI, user="once")
    took = [lanes.outcome(raw, "openai-chat", "anthropic").took_lane for _ in range(3)]
    assert took == [False, True, True]


def test_new_facts_and_providers_apply_at_once() -> None:
    """Cached heads from before are no longer used."""
    raw = _raw(_HI, temperature=0.5)

    def sent() -> Any:
        return dragoman.translate(raw, source="openai-chat", target="openai:gpt-4o").body.get(
            "temperature"
        )

    assert sent() == 0.5
    override_facts({"openai:gpt-4o": {"sampling.refused": ("temperature",)}})
    try:
        assert sent() is None
    finally:
        override_facts({"openai:gpt-4o": None})
    assert sent() == 0.5
    for dialect, field in (("anthropic", "system"), ("openai-chat", "messages")):
        register(Provider("lane-test", (Target(dialect=dialect),), "https://lane.example"))
        raw = _raw({"role": "system", "content": "Brief."}, _HI)
        body = dragoman.translate(raw, source="openai-chat", target="lane-test:m").body
        assert "Brief." in json.dumps(body[field])


# --- the switch, and memory


def test_the_lane_can_be_switched_off() -> None:
    """For debugging, by a context manager or an environment variable."""
    with switch.off():
        assert not lanes.outcome(_raw(_HI), "openai-chat", "anthropic").took_lane
    code = "from dragoman.wire.lane.switch import is_on; print(is_on())"
    for value, shown in (
        ("0", "False"),
        ("off", "False"),
        ("OFF", "False"),
        ("1", "True"),
        ("", "True"),
    ):
        variables = {"DRAGOMAN_LANE": value, "PYTHONPATH": ":".join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == shown


def test_memory_is_a_few_times_the_body() -> None:
    """A request of several megabytes takes less than five times its size."""
    turns = [{"role": role, "content": "word " * 2_000} for role in ("user", "assistant") * 150]
    raw = _raw(*turns, _HI)
    dragoman.translate(raw, source="openai-chat", target="anthropic")
    tracemalloc.start()
    try:
        dragoman.translate(raw, source="openai-chat", target="anthropic").to_bytes()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * len(raw)


# --- growing conversations


@pytest.fixture
def _remembered() -> Iterator[None]:
    remember_conversations(200_000)
    yield
    forget_conversations()


@pytest.mark.thorough
@pytest.mark.usefixtures("_remembered")
@pytest.mark.parametrize("source", lanes.DIALECTS)
def test_growing_conversations_are_translated_alike(source: str) -> None:
    """Message by message, two in parallel, with any whitespace."""
    field = dragoman.dialect(source).messages_field
    steps = grown = 0
    for number in range(12):
        rng = random.Random(number)
        made = [lanes.in_dialect(lanes.made_body(rng, 0), source) for _ in range(2)]
        target = rng.choice(lanes.TARGETS)
        indent = rng.choice((None, 1))
        for count in range(1, 30):
            for body in made:
                if body is None or not isinstance(body[field], list) or count > len(body[field]):
                    continue
                known = conversations()
                assert known is not None
                before = known.size
                raw = json.dumps({**body, field: body[field][:count]}, indent=indent).encode()
                found = lanes.difference(raw, source, target)
                assert not isinstance(found, str), (number, target, count, found)
                steps, grown = steps + 1, grown + (known.size != before)
    is_remembered = not lane_of(source).has_places  # type: ignore[union-attr]  # all have one
    assert bool(grown) == is_remembered


@pytest.mark.usefixtures("_remembered")
def test_changed_conversations_are_not_continued() -> None:
    """With another beginning, head or target, a conversation is translated anew."""
    long = {"role": "user", "content": "word " * 100}
    answer = {"role": "assistant", "content": "A"}
    for messages in ([long], [long, answer, _HI], [long, answer, long], [long, _HI, answer, _HI]):
        for fields in ({}, {"user": "other"}):
            for target in ("anthropic", "gemini", "openai-responses"):
                found = lanes.difference(_raw(*messages, **fields), "openai-chat", target)
                assert not isinstance(found, str), found


def test_remembered_conversations_are_bounded() -> None:
    """None are kept by default; otherwise the given number of bytes is the limit."""
    assert conversations() is None
    remember_conversations(50_000)
    try:
        for number in range(50):
            raw = _raw({"role": "user", "content": f"{number} " * 500})
            dragoman.translate(raw, source="openai-chat", target="anthropic")
            known = conversations()
            assert known is not None
            assert 0 < known.size <= 50_000
    finally:
        forget_conversations()
    assert conversations() is None
