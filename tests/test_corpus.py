"""The reader of recorded traffic, with a small index and with the real one."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests import corpus as module
from tests.corpus import Corpus, CorpusNotFoundError, Recording, current_tier

HEADER = (
    "file\tprovider_api\tstreaming\tstatus\tfeatures\tbytes\ttier\tfidelity\thost\tmodel\tflags"
    "\tsource\tlicense\n"
)
INDEX = HEADER + (
    "a/1.json\tanthropic\t0\t200\ttext,system\t9\tcore\twire\th\tm\t\ts:x\tMIT\n"
    "a/2.json\tanthropic\t1\t200\ttext\t9\textended\twire\th\tm\treframed\ts:x\tMIT\n"
    'g/1.json\tgemini\t0\t400\t\t9\tcore\tsdk_object\th\t"odd\t\ts:y\tMIT\n'
)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    """A corpus of three lines, named by the environment."""
    (tmp_path / "INDEX.tsv").write_text(INDEX)
    monkeypatch.setenv("DRAGOMAN_CORPUS", str(tmp_path))
    monkeypatch.delenv("DRAGOMAN_TIER", raising=False)
    return Corpus.open()


def files(corpus: Corpus, **conditions: object) -> list[str]:
    """The file names of a selection."""
    return [recording.row.file for recording in corpus.select(**conditions)]  # type: ignore[arg-type]


def test_the_core_tier_is_the_default(small: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything else must be requested by argument or environment."""
    assert files(small) == ["a/1.json", "g/1.json"]
    assert files(small, tier="extended") == ["a/1.json", "a/2.json", "g/1.json"]
    monkeypatch.setenv("DRAGOMAN_TIER", "extended")
    assert len(files(small)) == 3
    assert len(files(small, tier="core")) == 2


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"provider_api": "anthropic"}, ["a/1.json", "a/2.json"]),
        ({"provider_api": ["gemini", "openai_chat"]}, ["g/1.json"]),
        ({"streaming": True}, ["a/2.json"]),
        ({"streaming": False, "status": 200}, ["a/1.json"]),
        ({"status": {400, 401}}, ["g/1.json"]),
        ({"fidelity": "wire", "features": ["system"]}, ["a/1.json"]),
    ],
)
def test_conditions_narrow_the_selection(
    small: Corpus, conditions: dict[str, object], expected: list[str]
) -> None:
    """Each condition takes one value or several, and all of them must hold."""
    assert files(small, tier="extended", **conditions) == expected


def test_a_row_is_typed(small: Corpus) -> None:
    """Numbers are numbers, lists are sets, and quotation marks have no special meaning."""
    first, second, third = small.rows
    assert (first.status, first.size, first.streaming) == (200, 9, False)
    assert first.features == {"text", "system"}
    assert second.flags == {"reframed"}
    assert third.features == frozenset()
    assert third.model == '"odd'


@pytest.mark.parametrize(
    ("response", "stream"),
    [
        ({"status": 200, "body": {}}, None),
        ({"status": 200, "sse": "data: é\n\n"}, "data: é\n\n".encode()),
        ({"status": 200, "ndjson": "{}\n"}, b"{}\n"),
        (
            {"status": 200, "eventstream": [], "raw_b64": base64.b64encode(b"\x00\xff").decode()},
            b"\x00\xff",
        ),
        ({"status": 200, "eventstream": []}, None),
    ],
)
def test_a_recording_gives_raw_streams(
    small: Corpus, response: dict[str, object], stream: bytes | None
) -> None:
    """Whatever the framing, the bytes are those that were sent."""
    path = small.root / "r.json"
    request = {"method": "POST", "host": "h", "path": "/p", "body": None}
    path.write_text(json.dumps({"request": request, "response": response}))
    recording = Recording(small.rows[0], path)
    assert recording.response_stream == stream
    assert recording.response_body == response.get("body")
    assert (recording.request_path, recording.request_body) == ("/p", None)
    assert recording.request_headers == recording.response_headers == {}
    assert recording.seq is None


def test_a_missing_corpus_says_where_it_was_looked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A missing default is a reason to skip; a missing explicit folder is an error."""
    monkeypatch.delenv("DRAGOMAN_CORPUS", raising=False)
    monkeypatch.setattr(module, "BESIDE", tmp_path)
    with pytest.raises(CorpusNotFoundError, match="DRAGOMAN_CORPUS is not set"):
        Corpus.open()
    monkeypatch.setenv("DRAGOMAN_CORPUS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="no INDEX"):
        Corpus.open()


def test_an_unknown_tier_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    """A typing error must not silently run the small set."""
    monkeypatch.setenv("DRAGOMAN_TIER", "everything")
    with pytest.raises(ValueError, match="core or extended"):
        current_tier()


@pytest.mark.corpus
def test_every_recording_can_be_read(corpus: Corpus) -> None:
    """The index and the files agree, and each recording holds an answer."""
    found = corpus.select(status=200)
    assert [each.row.file for each in found if not is_sound(each)] == []


def is_sound(recording: Recording) -> bool:
    """Whether a recording is what the index says, with an answer."""
    row, content = recording.row, recording.content
    if (content["provider_api"], content["response"]["status"]) != (row.provider_api, row.status):
        return False
    if row.streaming and "eventstream" in content["response"]:
        return True
    has_stream = row.streaming and bool(recording.response_stream)
    return has_stream or recording.response_body is not None
