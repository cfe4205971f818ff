"""The request log: one line each, without content or keys, that can't be forged."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from time import monotonic, sleep

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.gateway.access_log import AccessLog, json_line, text_line
from dragoman.gateway.records import RequestRecord
from dragoman.model.usage import Usage

RECORD = RequestRecord(
    "chat", "anthropic", 200, 1.25, first_byte=0.1, route="*", provider="openai", model="gpt-5",
    key="k1", usage=Usage(input=5, output=2, cache_read=3, thinking=1), cost=Decimal("0.01"),
    losses=("messages[0].parts[1]", "messages[3].parts[1]"), repairs=("W46",), attempts=2,
    stream=True, sent=321,
)  # fmt: skip


def test_a_json_line() -> None:
    """Every field of a request, by name."""
    said = json.loads(json_line(0.5, RECORD, 2))
    assert said == {
        "time": "1970-01-01T00:00:00.500+00:00", "level": "info", "event": "request",
        "kind": "chat", "front": "anthropic", "status": 200, "seconds": 1.25, "first_byte": 0.1,
        "route": "*", "provider": "openai", "model": "gpt-5", "key": "k1", "tokens_in": 8,
        "tokens_out": 3, "tokens_cached": 3, "tokens_reasoning": 1, "cost": 0.01, "attempts": 2,
        "sent": 321, "stream": True, "losses": ["messages[].parts[]"], "repairs": ["W46"],
        "worker": 2,
    }  # fmt: skip


def test_a_text_line() -> None:
    """The same for people."""
    assert text_line(0.5, RECORD).decode() == (
        "1970-01-01T00:00:00.500+00:00 200 1.25s chat anthropic -> openai gpt-5 route=* key=k1"
        " tokens_in=8 tokens_out=3 tokens_cached=3 tokens_reasoning=1 cost=0.01 attempts=2"
        " sent=321 stream losses=messages[].parts[] repairs=W46\n"
    )


@settings(max_examples=50, deadline=None)
@given(name=st.text(), path=st.text())
def test_names_can_not_forge_lines(name: str, path: str) -> None:
    """Any model or field name stays one printable word on one line."""
    record = RequestRecord(
        "chat", "gemini", 404, 0.001, model=name, provider=name, route=name, key=name,
        losses=(path,), repairs=(path,), error="ModelNotFound", request_id=name,
    )  # fmt: skip
    for line in (json_line(1.0, record), text_line(1.0, record)):
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        assert all(32 <= byte < 127 for byte in line[:-1])
        assert len(line) < 2000
    assert json.loads(json_line(1.0, record))["status"] == 404
    assert text_line(1.0, record).split(b" ")[1] == b"404"


@contextmanager
def written(form: str, path: Path) -> Generator[AccessLog, None, None]:
    """A log that writes to a file."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    log = AccessLog(form, fd=fd)  # type: ignore[arg-type]
    try:
        yield log
    finally:
        log.close()
        os.close(fd)


@pytest.mark.parametrize("form", ["json", "text"])
def test_everything_is_written_at_the_end(tmp_path: Path, form: str) -> None:
    """Closing writes pending lines; health checks of load balancers are not logged."""
    with written(form, tmp_path / "log") as log:
        for _ in range(1000):
            log(RECORD)
        log(RequestRecord("health", "openai-chat", 200, 0.001))
    assert len((tmp_path / "log").read_bytes().splitlines()) == 1000


def test_a_slow_reader_blocks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are queued, and beyond a limit dropped and counted."""
    monkeypatch.setattr("dragoman.gateway.access_log._MAX_QUEUED", 500)
    reading, writing = os.pipe()
    log = AccessLog("text", fd=writing)
    for _ in range(2000):
        log(RECORD)
    assert log.dropped > 0
    drained = threading.Thread(target=_drain, args=(reading,))
    drained.start()
    log.close()
    os.close(writing)
    drained.join(10)
    os.close(reading)


def _drain(fd: int) -> None:
    while os.read(fd, 1 << 20):
        pass


def test_a_closed_pipe_breaks_nothing() -> None:
    """It ends the log, not the server."""
    reading, writing = os.pipe()
    os.close(reading)
    log = AccessLog("text", fd=writing)
    log(RECORD)
    log.close()
    log(RECORD)
    os.close(writing)


def test_lines_are_written_soon(tmp_path: Path) -> None:
    """Whether the writer sleeps, writes or waits: no line waits for the next."""
    path = tmp_path / "log"
    with written("json", path) as log:
        for number in range(30):
            log(RECORD)
            sleep(number % 7 * 0.012)
        until = monotonic() + 10
        while path.read_bytes().count(b"\n") < 30 and monotonic() < until:
            sleep(0.02)
        assert path.read_bytes().count(b"\n") == 30


def test_the_log_names_the_provider_of_the_file_and_who_failed() -> None:
    """The line has the name in `[providers]`, and failed fallback targets with their errors."""
    record = RequestRecord(
        "chat", "anthropic", 200, 0.5, provider="openai-compatible", place="green", model="m",
        attempts=2,
        tried=(("blue", "big model", 0.1, "Overloaded"), ("green", "m", 0.2, None)),
    )  # fmt: skip
    told = json.loads(json_line(1.0, record))
    assert told["provider"] == "green"
    assert told["failed"] == [{"provider": "blue", "model": "big?model", "error": "Overloaded"}]
    assert b" -> green m " in text_line(1.0, record)
    assert b" failed=blue:Overloaded" in text_line(1.0, record)
