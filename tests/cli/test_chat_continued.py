"""What a continued chat restores: its model, instructions, settings and tools."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dragoman import Message
from dragoman.cli.chat.chat_state import KEY, ChatState, state_of
from dragoman.cli.commands import dragoman as command
from dragoman.history.chat import ChatHistory
from dragoman.history.identity import SessionIdentity
from tests.cli.loopback import Came, Goes, said, serving, streamed
from tests.cli.terminals import CTRL_D, Terminal, dragoman, terminal

pytestmark = pytest.mark.usefixtures("own_folder")

TOOL = """
import pathlib

def weather(city: str) -> str:
    '''The weather.'''
    return "rain"

pathlib.Path("loaded").touch()
"""


def run(*arguments: str, stdin: str = "") -> Result:
    """Run a command."""
    return CliRunner().invoke(command, arguments, input=stdin)


def answer(came: Came) -> Goes:
    """Reply "Yes.", streamed or not as requested."""
    return streamed("Yes.") if came.json.get("stream") else said("Yes.")


def leave(screen: Terminal) -> None:
    """Leave the chat."""
    screen.type(CTRL_D)
    assert screen.ended() == 0, screen.shown


def test_a_chat_continues_with_model_instructions_settings_and_tools() -> None:
    """Options and changes made during the chat are restored, and the screen says so."""
    Path("mine.py").write_text(TOOL)
    with serving(answer) as vendor:
        there = ("--base-url", f"{vendor.url}/v1")
        begun = dragoman("chat", "-m", "openai-compatible:m", *there, "-s", "Be brief.",
                         "-o", "seed=7", "-o", 'stop=["END", "."]', "-T", "mine.py")  # fmt: skip
        with terminal(begun) as screen:
            screen.until_ready("tools: weather")
            screen.say("One")
            screen.until_ready("Yes.")
            screen.say("/set temperature 0.2")
            screen.until_ready("temperature: 0.2")
            screen.say("/system Be kind.")
            screen.until_ready("system prompt set")
            screen.say("Two")
            screen.until_shown("Yes.", count=2)
            screen.until_ready()
            leave(screen)
        Path("loaded").unlink()
        Path("elsewhere").mkdir()
        with terminal(dragoman("chat", "--continue")) as screen:
            screen.until_ready("system prompt: Be kind.")
            greeting = screen.shown
            assert "openai-compatible:m · stored as" in greeting
            assert "tools: weather" in greeting
            assert "settings: seed 7" in greeting
            assert "temperature 0.2" in greeting
            assert Path("loaded").exists()
            screen.say("Three")
            screen.until_shown("Yes.", count=2)
            screen.until_ready()
            leave(screen)
    sent = [came.json for came in vendor.came]
    assert [body["messages"][0]["content"] for body in sent] == [
        "Be brief.",
        "Be kind.",
        "Be kind.",
    ]
    assert [body.get("temperature") for body in sent] == [None, 0.2, 0.2]
    assert {body["seed"] for body in sent} == {7}
    assert sent[0]["stop"] == sent[2]["stop"] == ["END", "."]
    assert {body["tools"][0]["function"]["name"] for body in sent} == {"weather"}
    assert all(KEY not in json.dumps(body) for body in sent)


def test_a_template_still_applies_to_each_message() -> None:
    """It applies even if its file has been deleted."""
    run("ask", "-m", "echo:", "$input, in $language!", "--save", "t")
    run("chat", "-t", "t", "-p", "language", "Turkish", stdin="One\n")
    Path(run("templates", "path").stdout.strip(), "t.toml").unlink()
    with terminal(dragoman("chat", "-c")) as screen:
        screen.until_ready("template: t")
        screen.say("Two")
        screen.until("Two, in Turkish!")
        screen.until_ready()
        leave(screen)


def test_the_command_line_overrides_the_stored_state() -> None:
    """Each option overrides one setting; `--system ''` removes the instructions."""
    with serving(said("Yes.")) as vendor:
        there = ("-m", "openai-compatible:m", "--base-url", f"{vendor.url}/v1")
        options = ("-o", "seed=7", "-o", "top_p=0.5")
        run("ask", *there, "-s", "Be brief.", *options, "--session", "s", "One")
        run("chat", "--session", "s", "-s", "", "-o", "seed=8", stdin="Two\n")
    first, second = (came.json for came in vendor.came)
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert [m["role"] for m in second["messages"]] == ["user", "assistant", "user"]
    assert (second["seed"], second["top_p"]) == (8, 0.5)


def test_the_chat_s_model_overrides_the_environment_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """DRAGOMAN_MODEL is for new chats."""
    run("chat", "echo:", "--session", "s", stdin="One\n")
    monkeypatch.setenv("DRAGOMAN_MODEL", "openai:gpt-5")
    assert run("chat", "--continue", stdin="Two\n").stdout == "Two\n"


def test_undone_messages_are_not_continued() -> None:
    """The restored state is that of the remaining messages."""
    stdin = "One\n/system Be odd.\nTwo\n/undo\n"
    run("chat", "echo:", "-s", "Be brief.", "--session", "s", stdin=stdin)
    with terminal(dragoman("chat", "--session", "s")) as screen:
        screen.until_ready("system prompt: Be brief.")
        leave(screen)


def test_another_session_brings_its_own_state() -> None:
    """A session restores its model, instructions and settings; /new keeps the current ones."""
    Path("play.json").write_text(json.dumps(["Played."]))
    run("chat", "scripted:play.json", "-s", "Be brief.", "-o", "seed=7", "--session", "first",
        stdin="One\n")  # fmt: skip
    with terminal(dragoman("chat", "echo:", "-s", "Be long.")) as screen:
        screen.until_ready("system prompt: Be long.")
        screen.say("/sessions first")
        screen.until_ready("system prompt: Be brief.")
        assert "settings: seed 7" in screen.shown
        screen.say("Two")
        screen.until_shown("Played.", count=2)
        screen.until_ready()
        leave(screen)


# --- histories written by others


def imported(state: dict[str, Any]) -> None:
    """Store a chat with a state that this installation didn't sign."""

    async def write() -> None:
        async with await ChatHistory.open(SessionIdentity(agent="chat", chat="theirs")) as history:
            await history.clear()
            await history.add(Message.user("Hi", metadata={KEY: {**state, "mark": "0" * 64}}))
            await history.add(Message.assistant("Yes."))

    asyncio.run(write())


def test_tools_named_by_an_imported_chat_are_not_loaded_unasked() -> None:
    """On a terminal the user is asked; in a pipe a message says what was skipped."""
    Path("evil.py").write_text(TOOL)
    imported({"model": "echo:", "tools": [str(Path("evil.py").absolute())]})
    done = run("chat", "--continue", stdin="Two\n")
    assert (done.stdout, Path("loaded").exists()) == ("Two\n", False), done.stderr
    assert "evil.py" in done.stderr
    imported({"model": "echo:", "tools": [str(Path("evil.py").absolute())]})
    assert run("ask", "-c", "Three").stdout == "Three\n"
    imported({"model": "echo:", "tools": [str(Path("evil.py").absolute())]})
    # The question names a file of pytest's: however long its path is, the line must not be broken.
    with terminal(dragoman("chat", "--continue"), columns=400) as screen:
        screen.until("Load and run their code? [Y/n]")
        screen.type("n\r")
        screen.until_ready()
        assert not Path("loaded").exists()
        leave(screen)


def test_a_key_is_not_sent_to_an_address_from_an_imported_chat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a pipe nobody can agree to it, so the provider's usual address is used."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")  # no request leaves this machine
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    imported({"model": "openai:gpt-5", "base_url": "http://evil.example/v1"})
    for done in (run("chat", "--continue", stdin="Two\n"), run("ask", "-c", "Two")):
        assert done.exit_code == 5
        assert "(http://evil.example" not in done.stderr
        assert "api.openai.com" in done.stderr


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
_NAMES = st.sampled_from(
    ["model", "base_url", "dialect", "system", "settings", "tools", "template", "mark", "x"]
)
_SETTINGS = st.dictionaries(st.sampled_from(["seed", "stop", "thinking", "service", "x"]), _JSON)


@example({"mark": "¡"})
@example({"mark": {"¡": None}})
@given(_JSON | st.dictionaries(_NAMES, _JSON | _SETTINGS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_state_can_be_read_and_an_unsigned_one_is_not_ours(state: Any) -> None:
    """Invalid values count as not set."""
    found = state_of([Message.user("Hi", metadata={KEY: state})])
    assert not found.is_ours
    assert isinstance(found.settings, dict)
    assert all(isinstance(each, str) for each in found.tools)


def test_a_state_round_trips() -> None:
    """Structured settings are restored as well."""
    from dragoman.cli.request_settings import settings_from

    pairs = ["seed=7", "thinking=low", 'service={"user": "u1"}', 'stop=["a", "1"]', "top_p=0.5",
             "logprobs=on", "thinking=off", "tool_choice=auto"]  # fmt: skip
    for each in (pairs[:6], pairs[4:]):
        state = ChatState(model="m", system="S", settings=settings_from(each), tools=("builtin",))
        back = state_of([Message.user("Hi", metadata={KEY: state.to_metadata()})])
        assert (back, back.is_ours) == (state, True)


# --- sessions of other programs

EXPORTED = SessionIdentity(agent="chatgpt", chat="a1/b", user="ana")


def kept_elsewhere(*identities: SessionIdentity) -> None:
    """Store a conversation in each of these sessions, as an import does."""

    async def write() -> None:
        for identity in identities:
            async with await ChatHistory.open(identity) as history:
                await history.extend(["Where is the Old Bridge?", Message.assistant("In Mostar.")])

    asyncio.run(write())


@pytest.mark.parametrize(("command_line", "stdin"), [(("ask", "On"), ""), (("chat",), "On\n")])
@pytest.mark.parametrize("name", ["chatgpt/a1/b", EXPORTED.digest, EXPORTED.digest[:12]])
def test_a_session_of_another_program_is_continued(
    command_line: tuple[str, ...], stdin: str, name: str
) -> None:
    """`--session` takes AGENT/CHAT or a digest, as `history list` shows them."""
    kept_elsewhere(EXPORTED)
    done = run(*command_line, "-m", "echo:", "--session", name, stdin=stdin)
    assert (done.exit_code, done.stdout) == (0, "On\n"), done.stderr
    (session,) = json.loads(run("history", "list").stdout)
    assert session["messages"] == 4


def test_a_chat_comes_before_the_session_of_another_program() -> None:
    """A chat of that name is continued, and a name without an agent starts a new chat."""
    kept_elsewhere(
        SessionIdentity(agent="chatgpt", chat="a1"),
        SessionIdentity(agent="chat", chat="chatgpt/a1"),
    )
    run("ask", "-m", "echo:", "--session", "chatgpt/a1", "On")
    run("ask", "-m", "echo:", "--session", "a1", "On")
    found = json.loads(run("history", "list").stdout)
    sizes = {tuple(each["identity"].values()): each["messages"] for each in found}
    assert sizes == {("chatgpt", "a1"): 2, ("chat", "chatgpt/a1"): 4, ("chat", "a1"): 2}


def test_an_ambiguous_session_is_not_continued() -> None:
    """Sessions of several users are listed, and nothing is sent or stored."""
    kept_elsewhere(*(SessionIdentity(agent="chatgpt", chat="a1", user=user) for user in ("a", "b")))
    done = run("chat", "-m", "echo:", "--session", "chatgpt/a1", stdin="On\n")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "2 sessions match" in done.stderr
    assert [each["messages"] for each in json.loads(run("history", "list").stdout)] == [2, 2]
