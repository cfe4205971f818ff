"""The benchmarks run, on small inputs and without the peers; what they measure decides nothing."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

import dragoman
from benchmarks import conversations, converting, growth, measured, recordings, sdks, streams
from benchmarks import translation as translations
from benchmarks.clock import seconds, summed
from benchmarks.report import Ratio
from dragoman.model.responses import Response
from tests.corpus import Corpus, CorpusNotFoundError

SDKS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic",
        "gemini": "google.genai", "ollama": "ollama"}  # fmt: skip


@pytest.mark.parametrize("target", recordings.DIALECTS)
def test_the_conversation_comes_through_whole(target: str) -> None:
    """What is measured has every message, in every dialect; and a missing one would be noticed."""
    done = translations.ours(target)(conversations.body(3))
    assert conversations.is_whole(done, 3)
    assert not conversations.is_whole(done, 4)
    assert not conversations.is_whole(done.replace(b"umbrella at home", b"", 1), 3)


def test_every_dialect_is_measured() -> None:
    """A new dialect needs its place in the benchmarks."""
    assert sorted(recordings.DIALECTS) == list(dragoman.dialects())


@pytest.mark.parametrize("dialect", recordings.DIALECTS)
def test_a_stream_is_read_alike_in_one_piece_and_in_many(dialect: str) -> None:
    """Both ways that are measured give the same answer, all of it."""
    words = recordings.arguments(4)
    stream = recordings.encoded(dialect, recordings.answer(5, words))
    pieces = recordings.pieces(dialect, stream)
    assert b"".join(pieces) == stream
    assert len(pieces) >= len(recordings.documents(dialect, stream)) > 5
    whole, pieced = streams.read(dialect)(stream), streams.read_pieces(dialect)(pieces)
    assert isinstance(whole, Response)
    assert isinstance(pieced, Response)
    for response in (whole, pieced):
        assert response.message.text == "word 0 word 1 word 2 word 3 word 4 "
        assert response.tool_calls[0].arguments == {"key": 12, "end": 1}


@pytest.mark.parametrize("dialect", recordings.DIALECTS)
def test_the_sdks_read_the_same_stream(dialect: str) -> None:
    """Each way of an SDK gives about as many chunks as there are events."""
    pytest.importorskip(SDKS[dialect])
    stream = recordings.encoded(dialect, recordings.answer(50, ()))
    for name, read in sdks.readers(dialect).items():
        assert len(read(stream)) >= 50, name


def test_there_are_streams_without_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is recorded, streams of our own making are measured, and called so."""

    def nowhere() -> None:
        raise CorpusNotFoundError

    monkeypatch.setattr(Corpus, "open", nowhere)
    assert recordings.recorded("anthropic") == []
    assert len(recordings.documents("anthropic", recordings.made("anthropic")[0])) > 300


def test_growth_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Sizes go in, times for one item come out, with a ratio for every dialect that has them."""
    ratios = [*growth.of_messages((4, 8)), *growth.of_parts((1, 2, 4)), *growth.of_deltas((5, 20))]
    assert len(ratios) == 5 + 5 + 2 * 3
    assert all(ratio.ratio > 0 for ratio in ratios)
    printed = capsys.readouterr().out
    assert "anthropic         4: " in printed
    assert "ollama: has no arguments in pieces" in printed


def test_documents_are_converted(tmp_path: Path) -> None:
    """The file is as large as was asked for, and all of it is converted; a count is checked."""
    path = tmp_path / "in.jsonl"
    count = converting.write_documents(path, 40_000)
    assert 20_000 < path.stat().st_size <= 40_000
    assert len(path.read_bytes().splitlines()) == count
    run = converting.converted(path, 1)
    assert run.seconds > 0
    assert run.peak > 1_000_000


def test_a_command_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    """A command's time and memory are printed as two numbers."""
    measured.main([sys.executable, "-c", "pass"])
    took, peak = capsys.readouterr().out.split()
    assert float(took) > 0
    assert int(peak) > 1_000_000
    with pytest.raises(SystemExit) as ended:
        measured.main([sys.executable, "-c", "raise SystemExit(3)"])
    assert ended.value.code == 3


def test_each_job_takes_part_in_each_round() -> None:
    """Every job is run as often as asked, and its best time is kept under its name."""
    calls: list[str] = []
    jobs = {name: [partial(calls.append, name)] * 2 for name in ("a", "b")}
    assert set(summed(jobs, rounds=3)) == {"a", "b"}
    assert calls == ["a", "b"] * 6
    times = seconds({"a": lambda: calls.append("c")}, rounds=2, per_round=0)
    assert times["a"] > 0
    assert calls.count("c") == 4  # two to get to know it


@pytest.mark.parametrize(
    ("ratio", "is_met"),
    [
        (Ratio("x", 8.1, at_most=8), False),
        (Ratio("x", 8, at_most=8), True),
        (Ratio("x", 9.9, at_least=10), False),
        (Ratio("x", 99), True),
    ],
)
def test_a_missed_bar_is_marked(ratio: Ratio, is_met: bool) -> None:
    """A ratio on the wrong side of its bar says so; without a bar there is none to miss."""
    assert ratio.is_met is is_met
    assert ("MISSED" in str(ratio)) is not is_met
