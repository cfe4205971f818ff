"""Errors of `dragoman chat` in a pipe, and how small models are asked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from dragoman import Agent, ChatHistory, Message, SessionIdentity, ToolCall
from dragoman.agent.harmless_tools import now
from dragoman.cli.chat.commands import obey
from dragoman.cli.chat.model_commands import chooses_tools
from dragoman.cli.chat.screens import PipeScreen
from dragoman.cli.chat.talk import Talk
from dragoman.cli.chat.typed import PipedLines
from dragoman.cli.exit_codes import clean_ending
from dragoman.errors import ToolRetry
from dragoman.transport.scripted import ScriptedModel
from tests.cli.loopback import DRAGOMAN, Goes, refused, said, script, serving, streamed
from tests.cli.samples import SECRET
from tests.cli.test_chat import TOOLS, call, run, stored

pytestmark = pytest.mark.usefixtures("own_folder")


# --- errors


def test_a_provider_error_ends_a_pipe_as_it_ends_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with the provider's error, the exit code 5, and no output."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(refused(400, "bad", SECRET)) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--session", "s",
                   stdin="One\nTwo\n")  # fmt: skip
    assert done.exit_code == 5
    assert done.stderr.startswith("dragoman: openai:gpt-4.1: ")
    assert f"provider message: no: {SECRET}" in done.stderr
    assert SECRET not in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert [m.text for m in stored()] == ["One"]


def test_the_received_part_of_an_interrupted_answer_is_stored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is marked as incomplete."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(streamed("Half", " an", is_whole=False)) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--session", "s",
                   "--dialect", "openai-chat", stdin="Well?\n")  # fmt: skip
    assert (done.exit_code, done.stdout) == (5, "Half an\n")
    last = stored()[-1]
    assert (last.role.value, last.text, last.finish) == ("assistant", "Half an", "error")


def test_an_error_in_mid_stream_says_what_the_provider_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After the part that came, as for an error in place of the response."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    error = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'
    answer = streamed("Half", " an", is_whole=False)
    with serving(Goes(pieces=[*(answer.pieces or ()), error])) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat",
                   stdin="Well?\n")  # fmt: skip
    assert (done.exit_code, done.stdout) == (5, "Half an\n")
    assert done.stderr.endswith("provider message: out of memory\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "no model given"),
        (("openai:gpt-5",), "openai needs an API key"),
        (("--continue", "--session", "s", "echo:"), "combined with --session"),
        (("--continue", "--no-history", "echo:"), "combined with --no-history"),
        (("--tools", "builtin", "--no-tools", "echo:"), "can't be combined"),
        (("--continue", "echo:"), "there is no stored chat"),
        (("--dialect", "anthropic", "echo:"), "doesn't accept --dialect"),
    ],
)
def test_mistakes_in_the_command_line_are_reported(
    arguments: tuple[str, ...], problem: str
) -> None:
    """Usage errors come before anything else is done."""
    done = run(*arguments, stdin="Hi\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert problem in done.stderr


def test_the_environment_names_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """DRAGOMAN_MODEL is used if the command line names no model."""
    monkeypatch.setenv("DRAGOMAN_MODEL", "echo:")
    assert run(stdin="Hi\n").stdout == "Hi\n"


def test_input_that_is_not_text_ends_the_chat() -> None:
    """It is not quoted."""
    done = subprocess.run(
        [*DRAGOMAN, "chat", "echo:"], input=b"Hi\n\xff\xfe\n", capture_output=True, check=False,
        env={**os.environ, "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 3
    assert b"is not UTF-8 text" in done.stderr


def test_an_answer_that_is_not_streamed_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some servers don't stream, even if asked to."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said("At once.")) as vendor:
        done = run("openai:gpt-4.1", "--base-url", f"{vendor.url}/v1", "--dialect", "openai-chat",
                   stdin="Well?\n")  # fmt: skip
    assert done.stdout == "At once.\n", done.stderr


def test_an_interrupt_ends_a_pipe_and_keeps_the_received_part() -> None:
    """The exit code is that of an interrupt; the next line is not sent."""
    with serving(streamed("Half", " an", is_whole=False, hangs=True)) as vendor:
        process = subprocess.Popen(
            [*DRAGOMAN, "chat", "openai:gpt-4.1", "--base-url", f"{vendor.url}/v1",
             "--session", "s", "--dialect", "openai-chat"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "OPENAI_API_KEY": "sk-1"},
        )  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"Well?\nAnd?\n")
        process.stdin.flush()
        assert process.stdout.read(len("Half an")) == b"Half an"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, b"dragoman: interrupted\n")
    last = stored()[-1]
    assert (last.text, last.finish) == ("Half an", "cancelled")


def test_an_unreachable_server_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error has the address that was given."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(said("")) as vendor:
        gone = vendor.url
    done = run("openai:gpt-4.1", "--base-url", f"{gone}/v1", stdin="Hi\n")
    assert done.exit_code == 5
    assert gone in done.stderr


# --- the small model


@pytest.mark.parametrize(
    ("name", "can"),
    [("local:smollm2", False), ("local:SmolLM2", False), ("local:/x/big.gguf", True),
     ("echo:", True), ("openai:gpt-5", True)],
)  # fmt: skip
def test_which_models_can_choose_tools(name: str, can: bool) -> None:
    """All except the small model that Dragoman offers."""
    assert chooses_tools(name) is can


@pytest.mark.parametrize("has_limit", [False, True])
def test_a_small_model_gets_a_tool_only_on_request(has_limit: bool) -> None:
    """Its answers are limited to 400 tokens unless the user sets a limit."""
    called = Message.assistant(tool_calls=[ToolCall.create("1", "now", {})])
    model = ScriptedModel(["Hi.", called, "Late."], name="local:smollm2")
    with asyncio.Runner() as runner:
        history = runner.run(ChatHistory.open(SessionIdentity(chat="7"), "memory:"))
        talk = Talk(
            agent=Agent(model, tools=[now]), history=history, screen=PipeScreen(),
            lines=PipedLines(), runner=runner, tools=[now], chooses_tools=False,
            settings={"max_tokens": 50} if has_limit else {}, is_patient=False,
        )  # fmt: skip
        talk.say("Hello")
        obey(talk, "/tool now What time is it?")
    choices = [request.tool_choice for request in model.requests]
    assert [choice and (choice.mode, choice.names) for choice in choices] == [
        ("none", ()), ("named", ("now",)), ("auto", ())]  # fmt: skip
    assert model.requests[1].messages[-1].text == "What time is it?"
    most = None if has_limit else 400
    assert {request.sampling.max_tokens for request in model.requests} == {most}


def test_a_terminated_chat_in_a_pipe_ends_cleanly() -> None:
    """SIGTERM during an answer gives one line and no traceback of the cancelled task."""
    with serving(streamed("In ", is_whole=False, hangs=True)) as vendor:
        process = subprocess.Popen(
            [*DRAGOMAN, "chat", "-m", "openai-compatible:m", "--base-url", vendor.url,
             "--no-history"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b"Where?\n")
        process.stdin.flush()
        assert vendor.asked.wait(60)
        process.terminate()
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (143, b"dragoman: terminated\n")


@pytest.mark.parametrize("has_loop", [False, True])
def test_termination_never_interrupts_a_step_of_an_event_loop(has_loop: bool) -> None:
    """A loop finishes its current step; without a loop, the command ends at once."""
    done: list[str] = []

    def step() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
            done.append("whole")
        except BaseException:
            done.append("torn")
            raise

    async def work() -> None:
        step()
        await asyncio.sleep(60)

    def command() -> None:
        with clean_ending():
            if has_loop:
                asyncio.run(work())
            step()

    with pytest.raises(SystemExit) as ended:
        command()
    assert (ended.value.code, done) == (143, ["whole" if has_loop else "torn"])


def test_a_loop_is_reported_without_class_names() -> None:
    """The message names no Python class, because the CLI has no option for the limit."""
    Path("mine.py").write_text(TOOLS)
    play = script(*[call("weather", city="Basel")] * 9)
    done = run("-T", "mine.py", play, stdin="Weather?\n")
    assert "the model is stuck in a loop\n" in done.stderr
    assert "RunLimits" not in done.stderr


@pytest.mark.parametrize("place", ["Tokyo", "Asia/Tokyo", "tokyo", "Tokyo, Japan", ""])
def test_the_time_tool_accepts_cities(place: str) -> None:
    """Small models name cities; an unknown one is an error that the model can correct."""
    assert ("JST" in now.function(place)) is bool(place)
    with pytest.raises(ToolRetry):
        now.function("Atlantis")
