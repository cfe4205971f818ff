"""First start: which models are available, and how one is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli import reachable_models
from dragoman.cli.chat import choosing
from dragoman.cli.chat.choosing import chosen_model
from dragoman.cli.commands import dragoman as command
from dragoman.cli.model_aliases import Chosen
from dragoman.cli.reachable_models import Found, Place
from tests.cli.loopback import Came, Goes, serving
from tests.cli.terminals import dragoman, terminal

pytestmark = pytest.mark.usefixtures("own_folder")


def tagged(*names: str) -> Goes:
    """A list of models as Ollama returns it."""
    return Goes({"models": [{"name": name, "model": name} for name in names]})


def ollama(came: Came) -> Goes:
    """Ollama's replies: its list of models, and an answer."""
    if came.path == "/api/tags":
        return tagged("llama4:latest", "evil\x1b]0;x\x07", "qwen4:8b")
    message = {"role": "assistant", "content": "In Mostar."}
    done = {"model": "qwen4:8b", "message": message, "done": True, "done_reason": "stop"}
    return Goes(done, headers={"Content-Type": "application/x-ndjson"})


@pytest.mark.usefixtures("fake_llama")
def test_models_of_a_server_on_this_machine_are_offered_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Models of a running Ollama are offered by number, and the chat starts with the chosen one."""
    with serving(ollama) as vendor:
        monkeypatch.setenv("OLLAMA_HOST", vendor.url)
        with terminal(dragoman("chat", "--session", "s")) as screen:
            offer = screen.until("Which model?")
            assert "1  ollama:llama4:latest  (runs on this machine)" in offer
            assert "2  ollama:qwen4:8b" in offer
            assert "3  local:smollm2" in offer
            assert "evil" not in offer
            screen.say("9")
            screen.until_shown("Enter a number from 1 to 3")
            screen.say("2")
            screen.until_ready("ollama:qwen4:8b · stored as s")
            screen.say("Where is it?")
            screen.until_ready("In Mostar.")
        assert vendor.came[-1].json["model"] == "qwen4:8b"


def picked(monkeypatch: pytest.MonkeyPatch, found: list[Found], *answers: str) -> Chosen:
    """The model that is chosen with this answer."""
    given = iter(answers)
    monkeypatch.setattr(choosing, "_within_reach", lambda: found)
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(given))
    return chosen_model(None, None, is_terminal=True)


KEYED = Place("openai", "OPENAI_API_KEY is set", has_key=True)
SERVED = Place("ollama", "a server on this machine", has_key=False)


@pytest.mark.parametrize(
    ("answers", "chosen"),
    [
        (("1",), Chosen("ollama:m", "http://127.0.0.1:1")),
        (("3",), Chosen("openai:b")),
        (("6", "z"), Chosen("openai:z")),
        (("6", "openai:z"), Chosen("openai:z")),
        (("anthropic:claude-x",), Chosen("anthropic:claude-x")),
        (("echo:",), Chosen("echo:")),
        (("0", "nobody:x", "99999", "2"), Chosen("openai:a")),
    ],
)
def test_a_model_is_chosen_by_number_or_by_name(
    answers: tuple[str, ...], chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some models of each provider have a number; any other is chosen by name."""
    found = [
        Found(SERVED, "http://127.0.0.1:1", ["m"]),
        Found(KEYED, None, ["a", "b", "c", "d", "e"]),
    ]
    assert picked(monkeypatch, found, *answers) == chosen


def test_a_provider_that_does_not_list_its_models_can_be_chosen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """If its key is set, a model can be entered by name."""
    assert picked(monkeypatch, [Found(KEYED, None, [])], "1", "gpt-5") == Chosen("openai:gpt-5")
    assert "openai:  (another model (it did not list its models))" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("0.0.0.0", "http://127.0.0.1:11434"),  # noqa: S104 - what it listens on
        ("https://box.example", "https://box.example:443"),
        ("[::1]:9", "http://[::1]:9"),
        ("box:nonsense", None),
        ("", None),
    ],
)
def test_ollama_s_address_is_read_from_ollama_host(
    host: str, address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`OLLAMA_HOST` is accepted in all its forms."""
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert reachable_models.address_here("ollama") == address
    assert reachable_models.address_here("openai") is None


@pytest.mark.usefixtures("fake_llama")
def test_ask_offers_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `chat` does; what isn't a model is the question."""
    with serving(ollama) as vendor:
        monkeypatch.setenv("OLLAMA_HOST", vendor.url)
        with terminal(dragoman("ask", "Where", "is it?", "--no-history")) as screen:
            offer = screen.until("Which model?")
            assert "1  ollama:llama4:latest  (runs on this machine)" in offer
            screen.say("2")
            screen.until("In Mostar.")
            assert screen.ended() == 0
        body = vendor.came[-1].json
        assert body["model"] == "qwen4:8b"
        assert body["messages"][-1]["content"] == "Where is it?"


@pytest.mark.usefixtures("fake_llama")
def test_the_offer_is_not_part_of_the_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`dragoman ask … > file` asks on standard error."""
    with serving(ollama) as vendor:
        monkeypatch.setenv("OLLAMA_HOST", vendor.url)
        words = [
            "sh",
            "-c",
            'exec "$@" >answer.txt',
            "sh",
            *dragoman("ask", "Where?", "--no-history"),
        ]
        with terminal(words, folder=tmp_path) as screen:
            screen.until("Which model?")
            screen.say("2")
            assert screen.ended() == 0
    assert (tmp_path / "answer.txt").read_text() == "In Mostar.\n"


@pytest.mark.parametrize("words", [("ask", "hi"), ("ask",), ("chat",)])
def test_in_a_pipe_it_says_what_can_be_done(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the exit code of a wrong configuration; a provider whose key is set comes first."""
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 2
    assert f"no model given: name a model, as in `dragoman {words[0]} anthropic:" in done.stderr
    assert f"`dragoman {words[0]} local:smollm2` runs on this machine" in done.stderr
    monkeypatch.setenv("GROQ_API_KEY", "sk-1")
    done = CliRunner().invoke(command, words)
    assert f"`dragoman {words[0]} groq:MODEL` (its key is set)" in done.stderr


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("gpt-5", "openai:gpt-5"),
        ("llama3:8b", "ollama:llama3:8b"),
        ("smollm2", "local:smollm2"),
    ],
)
@pytest.mark.parametrize("verb", ["ask", "chat"])
def test_a_model_without_its_provider_is_completed(verb: str, name: str, whole: str) -> None:
    """In the error, which is short."""
    done = CliRunner().invoke(command, [verb, name])
    assert done.exit_code == 2
    assert f"(did you mean {whole}?)" in done.stderr


def test_places_are_local_servers_and_providers_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers without a key are not included."""
    monkeypatch.setenv("GROQ_API_KEY", "sk-1")
    found = {place.name: place.has_key for place in reachable_models.places()}
    servers = {"llama.cpp": False, "lmstudio": False, "ollama": False, "vllm": False}
    assert found == {**servers, "groq": True}


def test_make_chat_opens_a_chat() -> None:
    """The Makefile target exists and has a description."""
    makefile = (Path(__file__).parents[2] / "Makefile").read_text()
    assert "\nchat: $(VENV)/.local ## chat in the terminal" in makefile
    assert "-m dragoman.cli chat\n" in makefile
