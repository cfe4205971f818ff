"""Broken or hostile servers behind the gateway: an error in the front's form, in time."""

from __future__ import annotations

import json

import pytest

from tests.gateway.abuse.stage import Stage, refused
from tests.gateway.abuse.upstream import SECRET
from tests.gateway.answers import KINDS, SAID
from tests.gateway.client_requests import FRONTS, Answer, text_in

pytestmark = pytest.mark.whole

MEBIBYTE = 1024 * 1024
FAILING = (
    "closes", "garbage", "old_http", "endless_head", "endless_1xx", "redirects", "cut_length",
    "cut_chunks", "bad_chunks", "unknown_encoding", "html", "empty", "no_content", "no_json",
    "wrong_json", "deep", "hidden_error", "quoting_error", "huge_error",
)  # fmt: skip
WORKING = ("early_hints", "odd_headers", "trailing", "comments")
SLOW = ("stalls", "silent", "bomb", "endless_frame")
BACKS = tuple(KINDS)


def _pairs(seed: int) -> list[tuple[str, str]]:
    """Each front with its own dialect, and with another, which differs from test to test."""
    shifted = 1 + seed % (len(BACKS) - 1)
    others = [(each, BACKS[(n + shifted) % len(BACKS)]) for n, each in enumerate(FRONTS)]
    return [*zip(FRONTS, FRONTS, strict=True), *others]


CASES = [
    pytest.param(how, *pair, id=f"{how}-{'-'.join(pair)}")
    for number, how in enumerate(FAILING)
    for pair in _pairs(number)
]
SLOW_CASES = [
    pytest.param(how, *pair, id=f"{how}-{'-'.join(pair)}")
    for number, how in enumerate(SLOW)
    for pair in _pairs(number)
]


def _check_failed(front: str, answer: Answer, stream: bool) -> None:
    """An error before the answer has a status; after its start, the stream ends in an error."""
    assert SECRET not in repr(answer.headers)
    if answer.status != 200:
        assert SECRET.encode() not in answer.body, answer
        refused(front, answer, 400, 404, 413, 500, 502, 503, 504, 529)
        return
    assert stream, answer  # frames before the first error may have been passed through
    assert b'"error"' in answer.body or b'"response.failed"' in answer.body, answer
    with pytest.raises(Exception):  # noqa: B017, PT011 - each dialect has its own error
        text_in(front, answer, stream=True)


@pytest.mark.parametrize(("how", "front", "back"), CASES)
def test_failures_are_reported(stage: Stage, how: str, front: str, back: str) -> None:
    """A broken answer is never complete, and reveals nothing but the provider's error message."""
    for stream in (False, True):
        _check_failed(front, stage.ask(front, back, how, stream=stream), stream)
    stage.serves(front, back)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "front", "back"), SLOW_CASES)
def test_endless_and_slow_answers_end(stage: Stage, how: str, front: str, back: str) -> None:
    """An answer that never ends, stalls, or expands gives an error; memory is bounded."""
    before = stage.memory
    for stream in (False, True):
        _check_failed(front, stage.ask(front, back, how, stream=stream), stream)
    assert stage.memory - before < 700 * MEBIBYTE
    stage.serves(front, back)


@pytest.mark.parametrize("how", WORKING)
def test_unusual_answers_are_read(stage: Stage, front: str, how: str) -> None:
    """Whatever HTTP and the dialects allow reaches the client, without the provider's headers."""
    for back in BACKS:
        for stream in (False, True):
            answer = stage.ask(front, back, how, stream=stream)
            assert answer.status == 200, answer
            assert text_in(front, answer, stream=stream) == SAID
            assert "set-cookie" not in answer.headers
            assert SECRET not in repr(answer.headers)
        stage.serves(front, back)


def test_headers_are_not_injected(stage: Stage, front: str) -> None:
    """A provider's header with a line break adds no header."""
    for back in BACKS:
        for stream in (False, True):
            answer = stage.ask(front, back, "injected_header", stream=stream)
            assert "set-cookie" not in answer.headers
            assert answer.status in {200, 500, 502, 503}
    stage.serves(front)


def test_invalid_utf8_is_not_text(stage: Stage, front: str) -> None:
    """Such bytes are passed through, an error, or U+FFFD: never another text."""
    for back in BACKS:
        for stream in (False, True):
            answer = stage.ask(front, back, "no_utf8", stream=stream)
            if b"\xff\xfe" in answer.body:
                assert front == back  # passed through unchanged
            elif answer.status == 200 and b'"error"' not in answer.body:
                assert text_in(front, answer, stream=stream) == SAID.replace("Old", "\ufffd\ufffd")
            elif answer.status != 200:
                _check_failed(front, answer, stream)
    stage.serves(front)


def test_the_key_is_only_sent_to_its_provider(stage: Stage) -> None:
    """A redirect is not followed: no other server gets the conversation or the key."""
    asked = len(stage.upstream.asked)
    stage.ask("openai-chat", "openai-chat", "redirects")
    heads = [each.head for each in stage.upstream.asked[asked:]]
    assert heads
    assert not any(b"/trap" in head for head in heads)


def test_logs_are_json(stage: Stage) -> None:
    """Whatever the providers sent, each log line is one JSON object."""
    stage.serves()
    assert all(json.loads(json.dumps(line)) == line for line in stage.logged())
