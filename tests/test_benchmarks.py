"""The benchmarks run on small inputs and without the peers; their figures aren't checked here."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import dragoman
from benchmarks import (
    agent,
    agent_ours,
    agent_peers,
    agent_script,
    conversations,
    converting,
    growth,
    measured,
    recordings,
    sdks,
    stream_translation,
    streams,
)
from benchmarks import translation as translations
from benchmarks.clock import seconds, summed
from benchmarks.report import Ratio
from dragoman import Message
from dragoman.model.responses import Response
from tests.corpus import Corpus, CorpusNotFoundError

SDKS = {"openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic",
        "gemini": "google.genai", "ollama": "ollama"}  # fmt: skip


@pytest.mark.parametrize("target", recordings.DIALECTS)
def test_the_measured_conversation_is_complete(target: str) -> None:
    """It has every message in every dialect; a missing one would be noticed."""
    done = translations.ours(target)(conversations.body(3))
    assert conversations.is_whole(done, 3)
    assert not conversations.is_whole(done, 4)
    assert not conversations.is_whole(done.replace(b"umbrella at home", b"", 1), 3)


def test_every_dialect_is_measured() -> None:
    """A new dialect must be added to the benchmarks."""
    assert sorted(recordings.DIALECTS) == list(dragoman.dialects())


@pytest.mark.parametrize("dialect", recordings.DIALECTS)
def test_a_stream_is_read_alike_in_one_piece_and_in_many(dialect: str) -> None:
    """Both measured ways give the same complete answer."""
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
    """Each SDK gives about as many chunks as there are events."""
    pytest.importorskip(SDKS[dialect])
    stream = recordings.encoded(dialect, recordings.answer(50, ()))
    for name, read in sdks.readers(dialect).items():
        assert len(read(stream)) >= 50, name


@pytest.mark.parametrize("kind", ["text", "tool", "thinking"])
@pytest.mark.parametrize("target", recordings.DIALECTS)
def test_translated_streams_are_complete(target: str, kind: str) -> None:
    """In every dialect, in one piece and in many."""
    pieces = stream_translation.chat(9, kind)
    whole = stream_translation.translated("openai-chat", target, [b"".join(pieces)])
    message = _answer_in(target, whole)
    said = message.tool_calls[0].raw_arguments if kind == "tool" else str(message)
    said = message.thinking if kind == "thinking" else said
    assert "word7" in str(said)
    pieced = stream_translation.translated("openai-chat", target, pieces)
    assert _answer_in(target, pieced) == message


def _answer_in(dialect: str, stream: bytes) -> Message:
    decoder = dragoman.dialect(dialect).stream_decoder()
    decoder.feed(stream)
    decoder.close()
    return decoder.response.message


def test_there_are_streams_without_the_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without recordings, generated streams are measured, and labelled as such."""

    def nowhere() -> None:
        raise CorpusNotFoundError

    monkeypatch.setattr(Corpus, "open", nowhere)
    assert recordings.recorded("anthropic") == []
    assert len(recordings.documents("anthropic", recordings.made("anthropic")[0])) > 300


@pytest.mark.thorough
def test_growth_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Given sizes, it prints times per item, with a ratio for every dialect."""
    ratios = [*growth.of_messages((4, 8)), *growth.of_parts((1, 2, 4)), *growth.of_deltas((5, 20))]
    assert len(ratios) == 5 + 5 + 2 * 3
    assert all(ratio.ratio > 0 for ratio in ratios)
    printed = capsys.readouterr().out
    assert "anthropic         4: " in printed
    assert "ollama: has no arguments in pieces" in printed


def test_documents_are_converted(tmp_path: Path) -> None:
    """The file has the requested size and is converted completely; the count is checked."""
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


@pytest.mark.parametrize("what", agent_script.EXPECTED)
def test_our_agent_does_what_is_measured(what: str) -> None:
    """Each call ends as scripted, repeatedly."""
    job = agent_ours.jobs()[what]
    for _ in range(2):
        assert asyncio.run(_awaited(job)) == agent_script.EXPECTED[what]


@pytest.mark.parametrize("calls", [1, agent_script.CALLS])
def test_our_agent_runs_every_tool(calls: int) -> None:
    """Each call has its result from the function itself."""
    sent = agent_ours.with_tool(agent_script.weather, calls).send(agent_script.PROMPT)
    results = [each for message in asyncio.run(sent).messages for each in message.tool_results]
    assert [each.text for each in results] == ["2 days of rain in Basel"] * calls


@pytest.mark.parametrize(
    ("module", "jobs"),
    [("pydantic_ai", agent_peers.pydantic_ai), ("langchain", agent_peers.langchain)],
)
def test_the_other_agents_do_the_same(module: str, jobs: Callable[[], agent_script.Jobs]) -> None:
    """A measured peer reaches the same results."""
    pytest.importorskip(module)
    for what, job in jobs().items():
        assert asyncio.run(_awaited(job)) == agent_script.EXPECTED[what], what


async def _awaited(job: agent_script.Job) -> object:
    return await job()


@pytest.mark.thorough
def test_agents_take_turns(capsys: pytest.CaptureFixture[str]) -> None:
    """Everything in the script is measured for each of them, and printed."""
    ratios = agent.calling(
        {agent.OURS: agent_ours.jobs(), "too": agent_ours.jobs()}, rounds=1, per_round=0
    )
    assert [each.what for each in ratios] == ["times less than too"] * len(agent_script.EXPECTED)
    printed = capsys.readouterr().out
    assert all(f"\n{what}; CPU time" in printed for what in agent_script.EXPECTED)
    assert "one more tool call in the same turn" in printed


def test_the_target_compares_with_the_best_peer() -> None:
    """The required ratio is five times less than the best peer; other peers have none."""
    best, other = agent._ratios({agent.OURS: 1.0, "best": 4.9, "other": 50.0})
    assert (best.ratio, best.at_least, best.is_met) == (4.9, 5, False)
    assert (other.ratio, other.at_least, other.is_met) == (50, None, True)


def test_the_size_of_kept_objects_is_measured() -> None:
    """The size of one is the total divided by their number."""
    assert 10_000 < agent.idle_size(lambda: bytearray(10_000), count=5) < 20_000


def test_each_job_takes_part_in_each_round() -> None:
    """Every job runs as often as requested, and its best time is kept under its name."""
    calls: list[str] = []
    jobs = {name: [partial(calls.append, name)] * 2 for name in ("a", "b")}
    assert set(summed(jobs, rounds=3)) == {"a", "b"}
    assert calls == ["a", "a", "b", "b"] * 3
    times = seconds({"a": lambda: calls.append("c")}, rounds=2, per_round=0)
    assert times["a"] > 0
    assert calls.count("c") == 7  # five for calibration


@pytest.mark.parametrize(
    ("ratio", "is_met"),
    [
        (Ratio("x", 8.1, at_most=8), False),
        (Ratio("x", 8, at_most=8), True),
        (Ratio("x", 9.9, at_least=10), False),
        (Ratio("x", 99), True),
    ],
)
def test_a_missed_target_is_marked(ratio: Ratio, is_met: bool) -> None:
    """A ratio on the wrong side of its target is marked; without a target there is no mark."""
    assert ratio.is_met is is_met
    assert ("MISSED" in str(ratio)) is not is_met
