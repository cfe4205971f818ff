"""`dragoman convert`: its output, files and exit codes."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import dragoman
from dragoman import Messages
from dragoman.cli.commands import dragoman as command
from dragoman.cli.conversion import Job
from dragoman.cli.workers import outcomes
from dragoman.providers.documents.batches import batches, chunks_of
from tests.cli.samples import (
    ANSWERS,
    HISTORIES,
    REQUESTS,
    SECRET,
    chat,
    chat_answer,
    jsonl,
    lossy,
    many,
)


def convert(*arguments: str | Path, stdin: bytes | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["convert", *map(str, arguments)], input=stdin)


def rows(text: str) -> list[Any]:
    """The documents of a JSON Lines text."""
    return [json.loads(line) for line in text.split("\n") if line]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestDocuments:
    """Conversion of each kind of document."""

    @pytest.mark.parametrize("source", sorted(REQUESTS))
    @pytest.mark.parametrize("target", sorted(REQUESTS))
    def test_requests_become_requests(self, source: str, target: str) -> None:
        """The output is that of `translate`."""
        body = REQUESTS[source]
        done = convert("-", "--to", target, stdin=jsonl(body))
        assert done.exit_code == 0
        (made,) = rows(done.stdout)
        made.pop("model", None)
        expected = dragoman.translate(body, source=source, target=target).body
        assert made == {key: value for key, value in expected.items() if key != "model"}

    @pytest.mark.parametrize("source", sorted(ANSWERS))
    @pytest.mark.parametrize("target", sorted(ANSWERS))
    def test_responses_become_responses(self, source: str, target: str) -> None:
        """The text is kept."""
        done = convert("-", "--to", target, stdin=jsonl(ANSWERS[source]))
        assert done.exit_code == 0
        (body,) = rows(done.stdout)
        assert dragoman.dialect(target).decode_response(body).text == "In Mostar."

    @pytest.mark.parametrize("target", sorted(HISTORIES))
    def test_histories_become_requests_without_a_model(self, target: str) -> None:
        """A list of messages becomes a body without a model; the system message is in its place."""
        history = [{"role": "system", "content": "Be brief."}, *HISTORIES["openai-chat"]]
        done = convert("-", "--to", target, stdin=jsonl(history))
        (body,) = rows(done.stdout)
        assert "model" not in body
        read = dragoman.dialect(target).decode_request(body)
        spoken = [*(part.text for part in read.system), *(m.text for m in read.messages)]  # type: ignore[union-attr]  # they are texts
        assert spoken == ["Be brief.", "Hi", "Hello.", "Bye"]

    @pytest.mark.parametrize("source", sorted(REQUESTS))
    def test_a_round_trip_through_canonical_changes_nothing(self, source: str, place: Path) -> None:
        """Converting to canonical and back gives the same JSON."""
        documents = [REQUESTS[source], ANSWERS[source]]
        (place / "in").write_bytes(jsonl(*documents))
        assert convert("in", "--to", "canonical", "--out", "ours").exit_code == 0
        assert [row["kind"] for row in rows((place / "ours").read_text())] == [
            "Request",
            "Response",
        ]
        back = convert("ours", "--from", "canonical", "--to", source)
        assert rows(back.stdout) == documents

    def test_a_canonical_history_is_messages(self) -> None:
        """The document can be read by `Messages.from_json`."""
        done = convert("-", "--to", "canonical", stdin=jsonl(HISTORIES["openai-chat"]))
        assert [m.text for m in Messages.from_json(done.stdout)] == ["Hi", "Hello.", "Bye"]

    def test_a_provider_and_its_model_are_targets(self) -> None:
        """The model of the target replaces the model of the request."""
        body = chat(max_tokens=9)
        for target in ("groq", "groq:llama-3.3-70b-versatile", "openai:gpt-5"):
            done = convert("-", "--to", target, stdin=jsonl(body))
            expected = dragoman.translate(body, source="openai-chat", target=target).body
            assert rows(done.stdout) == [expected]

    def test_a_history_takes_the_model_of_the_target(self) -> None:
        """The result is a complete request."""
        done = convert("-", "--to", "groq:m", stdin=jsonl(HISTORIES["openai-chat"]))
        assert rows(done.stdout)[0]["model"] == "m"

    def test_a_response_is_converted_to_a_provider_s_dialect(self) -> None:
        """The model name is kept, because it names the model that answered."""
        done = convert("-", "--to", "groq:m", stdin=jsonl(ANSWERS["anthropic"]))
        assert rows(done.stdout)[0]["choices"][0]["message"]["content"] == "In Mostar."
        assert rows(done.stdout)[0]["model"] == "claude-sonnet-4-5"

    def test_gemini_s_model_is_reported_as_a_note(self) -> None:
        """Gemini has the model in the URL; the body keeps it in its `model` field."""
        done = convert("-", "--to", "gemini", "--strict", stdin=jsonl(chat(stream=True)))
        assert done.exit_code == 0
        assert rows(done.stdout)[0]["model"] == f"models/{chat()['model']}"
        noted = [line.split()[:3] for line in done.stderr.splitlines()[1:]]
        assert noted == [["1", "note", "model"], ["1", "note", "stream"]]

    @pytest.mark.parametrize("name", ["gpt-5", "meta-llama/llama-3.3:free", "a b%2Fc"])
    def test_a_chain_over_all_dialects_keeps_the_model(self, name: str) -> None:
        """The model is kept by dialects that have it in the URL, too."""
        body = jsonl({**chat(max_tokens=9), "model": name})
        for target in (*sorted(REQUESTS), "openai-chat"):
            done = convert("-", "--from", "auto", "--to", target, stdin=body)
            assert done.exit_code == 0
            body = done.stdout.encode()
        assert rows(body.decode())[0]["model"] == name


class TestForms:
    """One document, JSON Lines, arrays and several files."""

    def test_one_document_gives_one(self) -> None:
        """The output is compact and ends with a newline."""
        text = json.dumps(chat(), indent=2).encode()
        done = convert("-", "--to", "openai-chat", stdin=text)
        assert done.stdout == json.dumps(chat(), separators=(",", ":")) + "\n"

    def test_lines_give_lines(self) -> None:
        """JSON Lines give JSON Lines in the same order."""
        done = convert("-", "--to", "openai-chat", stdin=jsonl(chat("a"), chat("b")))
        assert rows(done.stdout) == [chat("a"), chat("b")]

    def test_an_array_gives_an_array(self) -> None:
        """An array gives an array, even an empty one."""
        array = json.dumps([chat("a"), chat_answer()], indent=2).encode()
        done = convert("-", "--to", "openai-chat", stdin=array)
        assert json.loads(done.stdout) == [chat("a"), chat_answer()]
        assert convert("-", "--to", "gemini", stdin=b"[]").stdout == "[]\n"

    def test_a_long_array_gives_an_array(self) -> None:
        """An array that takes several batches gives one array."""
        documents = [chat(f"{index}" * 1000) for index in range(900)]
        done = convert("-", "--to", "openai-chat", stdin=json.dumps(documents).encode())
        assert json.loads(done.stdout) == documents

    def test_empty_input_gives_empty_output(self) -> None:
        """Empty input is not an error."""
        done = convert("-", "--to", "openai-chat", stdin=b"\n")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")

    def test_several_files_give_lines(self, place: Path) -> None:
        """Several files give JSON Lines, whatever the form of each."""
        (place / "a.json").write_text(json.dumps(chat("a"), indent=2))
        (place / "b.json").write_text(json.dumps([chat("b"), chat("c")]))
        (place / "d.jsonl").write_bytes(jsonl(chat("d")))
        done = convert("a.json", "b.json", "-", "d.jsonl", "--to", "openai-chat",
                       stdin=jsonl(chat("x")))  # fmt: skip
        assert rows(done.stdout) == [chat(text) for text in "abcxd"]

    def test_jobs_keep_the_order(self, place: Path) -> None:
        """Several processes give the same output as one."""
        (place / "in.jsonl").write_bytes(many(9000))
        one = convert("in.jsonl", "--to", "anthropic")
        two = convert("in.jsonl", "--to", "anthropic", "--jobs", "2")
        assert two.exit_code == one.exit_code == 0
        assert two.stdout == one.stdout
        assert len(one.stdout.splitlines()) == 9000


class TestLosses:
    """Reports of losses."""

    def test_losses_are_counted_on_standard_error(self) -> None:
        """They are grouped by location and reason, so that many documents give a short table."""
        done = convert("-", "--to", "anthropic", stdin=jsonl(*[lossy()] * 50))
        assert done.exit_code == 0
        head, *lines = done.stderr.splitlines()
        assert head.split() == ["count", "kind", "where", "what", "happened"]
        assert {tuple(line.split()[:2]) for line in lines} == {("50", "loss"), ("50", "repair")}
        assert len(rows(done.stdout)) == 50

    def test_every_loss_is_listed_on_request(self, place: Path) -> None:
        """JSON Lines say which document, where in it, and why."""
        (place / "in.jsonl").write_bytes(jsonl(chat()) + b"\n" + jsonl(lossy()))
        assert convert("in.jsonl", "--to", "anthropic", "--losses", "lost").exit_code == 0
        found = [row for row in rows((place / "lost").read_text()) if row["kind"] == "loss"]
        expected = dragoman.translate(lossy(), source="openai-chat", target="anthropic").losses
        assert [(row["path"], row["reason"]) for row in found] == [
            (loss.path, loss.reason) for loss in expected
        ]
        assert {(row["file"], row["line"], row["document"], row["kind"]) for row in found} == {
            ("in.jsonl", 3, 2, "loss")
        }

    def test_strict_ends_at_the_first_loss(self, place: Path) -> None:
        """The error has the document and its losses, and no output file is written."""
        (place / "in.jsonl").write_bytes(jsonl(chat(), lossy(SECRET), chat()))
        done = convert(
            "in.jsonl", "--to", "anthropic", "--strict", "--out", "out", "--losses", "lost"
        )
        assert done.exit_code == 1
        assert "in.jsonl:2: " in done.stderr
        assert SECRET not in done.stderr
        assert rows((place / "lost").read_text())
        assert sorted(path.name for path in place.iterdir()) == ["in.jsonl", "lost"]

    def test_strict_can_keep_going(self, place: Path) -> None:
        """Documents with losses are left out."""
        (place / "in.jsonl").write_bytes(jsonl(chat(), lossy(), chat()))
        done = convert(
            "in.jsonl", "--to", "anthropic", "--strict", "--rejects", "left", "--out", "out"
        )
        assert done.exit_code == 1
        assert len(rows((place / "out").read_text())) == 2
        assert (place / "left").read_bytes() == jsonl(lossy())


BROKEN = [
    b"{",
    b'{"messages": 7}',
    b"rubbish",
    b'{"role": "user", "content": "' + SECRET.encode() + b'"}',
    b'{"model": "m", "messages": [{"role": "user", "content": "' + SECRET.encode(),
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"messages": [], "n": 1e999}',
]


class TestBroken:
    """Documents that can't be read."""

    @pytest.mark.parametrize("line", BROKEN)
    def test_the_first_invalid_document_ends_the_command(self, line: bytes, place: Path) -> None:
        """The message has its file, line and problem, and none of its content."""
        (place / "in.jsonl").write_bytes(jsonl(chat()) + b"\n" + line + b"\n" + jsonl(chat()))
        done = convert("in.jsonl", "--to", "anthropic", "--out", "out")
        assert done.exit_code == 3
        assert done.stderr.startswith("dragoman: in.jsonl:3: ")
        assert SECRET not in done.stderr
        assert "Traceback" not in done.stderr
        assert not (place / "out").exists()

    @pytest.mark.parametrize("jobs", ["1", "2"])
    def test_keep_going_leaves_invalid_documents_out(self, jobs: str, place: Path) -> None:
        """They are counted, and written unchanged to the file for rejects."""
        text = b"".join(jsonl(chat(str(n))) + line + b"\n" for n, line in enumerate(BROKEN))
        (place / "in.jsonl").write_bytes(text)
        done = convert("in.jsonl", "--to", "openai-chat", "--rejects", "left", "--jobs", jobs)
        assert done.exit_code == 3
        assert rows(done.stdout) == [chat(str(n)) for n in range(len(BROKEN))]
        assert (place / "left").read_bytes() == b"".join(line + b"\n" for line in BROKEN)
        assert f"{len(BROKEN)} of {2 * len(BROKEN)} documents converted" in done.stderr

    def test_many_invalid_documents_are_counted(self) -> None:
        """After a few lines, only their number is printed."""
        done = convert("-", "--to", "gemini", "--keep-going", stdin=b"rubbish\n" * 500)
        assert done.exit_code == 3
        assert len(done.stderr.splitlines()) < 30
        assert "0 of 500 documents converted" in done.stderr

    def test_one_message_per_line_is_explained(self) -> None:
        """The error explains this common mistake."""
        done = convert("-", "--to", "anthropic", stdin=jsonl(*HISTORIES["openai-chat"]))
        assert done.exit_code == 3
        assert (
            "-:1: this is a single message; put the messages of a conversation into one array"
            in done.stderr
        )

    def test_elements_of_an_array_have_numbers(self) -> None:
        """Errors number the elements, because all may be on one line."""
        text = json.dumps([chat(), chat(), {"messages": 7}]).encode()
        done = convert("-", "--to", "anthropic", stdin=text)
        assert done.exit_code == 3
        assert "-:1: document 3: " in done.stderr

    @pytest.mark.parametrize("ending", [b"", b"] x", b"]]"])
    def test_an_array_must_end_exactly_once(self, ending: bytes) -> None:
        """A missing or second end is an error; with --keep-going the elements are converted."""
        text = b"[" + json.dumps(chat()).encode() + ending
        assert convert("-", "--to", "gemini", stdin=text).exit_code == 3
        kept = convert("-", "--to", "openai-chat", "--keep-going", stdin=text)
        assert kept.exit_code == 3
        assert json.loads(kept.stdout) == [chat()]

    def test_an_internal_error_affects_one_document(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is reported without a traceback and content, and the others are converted."""
        from dragoman.providers.documents import reading

        def fails(*_: Any) -> None:
            raise KeyError(SECRET)

        monkeypatch.setattr(reading.Reader, "_read_history", fails)
        text = jsonl(chat(), HISTORIES["openai-chat"], chat())
        done = convert("-", "--to", "openai-chat", "--keep-going", stdin=text)
        assert done.exit_code == 3
        assert len(rows(done.stdout)) == 2
        assert "(KeyError at test_convert.py:" in done.stderr
        assert SECRET not in done.stderr


class TestFiles:
    """Output files."""

    def test_the_output_appears_when_it_is_complete(self, place: Path) -> None:
        """It replaces an existing file, keeps its mode, and leaves no temporary file."""
        (place / "in.jsonl").write_bytes(jsonl(chat()))
        (place / "out.jsonl").write_text("old")
        (place / "out.jsonl").chmod(0o640)
        done = convert("in.jsonl", "--to", "openai-chat", "--out", "out.jsonl")
        assert (done.exit_code, done.stdout) == (0, "")
        assert rows((place / "out.jsonl").read_text()) == [chat()]
        assert (place / "out.jsonl").stat().st_mode & 0o777 == 0o640
        assert len(list(place.iterdir())) == 2

    def test_a_new_file_has_the_usual_mode(self, place: Path) -> None:
        """The mode is the one that a shell's `>` would give."""
        (place / "other").touch()
        convert("-", "--to", "openai-chat", "--out", "out", stdin=jsonl(chat()))
        assert (place / "out").stat().st_mode == (place / "other").stat().st_mode

    def test_an_existing_output_survives_a_failure(self, place: Path) -> None:
        """It is unchanged."""
        (place / "out").write_text("old")
        done = convert("-", "--to", "openai-chat", "--out", "out", stdin=many(5000) + b"rubbish")
        assert done.exit_code == 3
        assert (place / "out").read_text() == "old"
        assert len(list(place.iterdir())) == 1

    @pytest.mark.parametrize("option", ["--out", "--losses", "--rejects"])
    @pytest.mark.parametrize("name", ["in.jsonl", "./in.jsonl", "link", "hard"])
    def test_an_input_is_never_overwritten(self, option: str, name: str, place: Path) -> None:
        """An input is recognized under any name."""
        (place / "in.jsonl").write_bytes(jsonl(chat()))
        (place / "link").symlink_to("in.jsonl")
        os.link("in.jsonl", "hard")
        done = convert("in.jsonl", "--to", "gemini", option, name)
        assert done.exit_code == 2
        assert "is already used as an input or output" in done.stderr
        assert (place / "in.jsonl").read_bytes() == jsonl(chat())

    def test_outputs_must_be_different_files(self, place: Path) -> None:
        """Two outputs would overwrite each other."""
        done = convert("-", "--to", "gemini", "--out", "x", "--losses", "./x", stdin=b"")
        assert done.exit_code == 2
        assert not list(place.iterdir())

    def test_a_symlink_is_followed(self, place: Path) -> None:
        """Its target is written, and the link stays."""
        (place / "link").symlink_to("out")
        convert("-", "--to", "openai-chat", "--out", "link", stdin=jsonl(chat()))
        assert (place / "link").is_symlink()
        assert rows((place / "out").read_text()) == [chat()]

    def test_a_device_is_written_directly(self) -> None:
        """A device can't be replaced by a new file."""
        done = convert("-", "--to", "gemini", "--out", os.devnull, "--losses", os.devnull,
                       stdin=jsonl(chat()))  # fmt: skip
        assert done.exit_code == 0
        assert not Path(os.devnull).is_file()

    def test_a_missing_folder_is_reported(self, place: Path) -> None:
        """The exit code is that of file errors, without a traceback."""
        done = convert("-", "--to", "gemini", "--out", "none/out", stdin=jsonl(chat()))
        assert done.exit_code == 4
        assert "No such file or directory" in done.stderr
        assert not list(place.iterdir())


class TestUsage:
    """Usage errors."""

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            (["-"], "--to"),
            (["--to", "gemini"], "FILE"),
            (["none.json", "--to", "gemini"], "none.json"),
            ([".", "--to", "gemini"], "directory"),
            (["-", "--to", "esperanto"], "unknown target; available are the dialects anthropic"),
            (["-", "--to", "groq:"], "a target must be a dialect, a provider or provider:model"),
            (["-", "--to", "gemini", "--from", "esperanto"], "unknown dialect; available"),
            (["-", "--to", "gemini", "--jobs", "0"], "--jobs"),
            (["-", "--to", "gemini", "--jobs", "62"], "--jobs"),
        ],
    )
    def test_usage_errors_are_reported(
        self, arguments: list[str], problem: str, place: Path
    ) -> None:
        """The exit code is 2, and nothing is written."""
        done = convert(*arguments, "--out", "out", stdin=jsonl(chat()))
        assert done.exit_code == 2
        assert problem in done.stderr
        assert not list(place.iterdir())

    def test_help_lists_the_exit_codes(self) -> None:
        """Scripts rely on them."""
        text = convert("--help").stdout
        assert "Exit codes:" in text
        assert "3   invalid document" in text


bodies = st.builds(
    chat, st.text(max_size=12), temperature=st.floats(0, 1), stop=st.lists(st.text(max_size=3))
)


@given(
    st.lists(bodies | st.just({"messages": 7}), min_size=1, max_size=8),
    st.integers(1, 400),
    st.booleans(),
)
def test_lines_in_any_chunks_give_what_translate_gives(
    documents: list[dict[str, Any]], size: int, ends_with_newline: bool
) -> None:
    """Line by line, whatever the chunks of the input, with invalid lines left out."""
    expected: list[Any] = []
    broken: list[int] = []
    for line, body in enumerate(documents, start=1):
        try:
            done = dragoman.translate(body, source="openai-chat", target="anthropic")
            expected.append(json.loads(done.to_bytes()))
        except dragoman.DragomanError:
            broken.append(line)
    text = jsonl(*documents)[: None if ends_with_newline else -1]
    batched = batches(chunks_of(io.BytesIO(text), size), "in.jsonl")
    found = list(outcomes(Job("openai-chat", "anthropic", keep_going=True), batched))
    assert [row for one in found for row in rows(one.output.decode())] == expected
    assert [reject.line for one in found for reject in one.rejects] == broken
